"""A reference set that is made of runs."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from sample_results import Setting, singles, small, write_results

from cwbench import sequences
from cwbench.reports import build
from cwbench.reports.analysis import reference
from cwbench.reports.analysis.make_reference import write_reference
from cwbench.spec.config import MetaWorldConfig

TASKS = sequences.get("cw3-1").tasks


def test_a_set_made_of_runs_gives_what_the_runs_give(tmp_path: Path, shipped: Path):
    results = tmp_path / "results"
    write_results(results, sequence_names=singles(TASKS), settings=[small("finetuning")])
    (shipped / "small.json").unlink()
    file = write_reference(results, "made", shipped)
    reference.shipped_sets.cache_clear()
    study = build.read(results)
    own = reference.find(study, study.protocols[0])
    shutil.rmtree(results)
    write_results(results, sequence_names=["cw3-1"], settings=[small("ewc")])
    other = build.read(results)
    made = reference.find(other, other.protocols[0])
    assert set(own.curves) == set(made.curves) == set(TASKS)
    for task in TASKS:
        assert np.array_equal(own.curves[task].success, made.curves[task].success)
    record = json.loads((shipped / "made.json").read_text())
    assert record["sac"]["batch_size"] and "machine" not in record
    assert file.stat().st_size < 20_000


def test_a_set_takes_further_seeds_and_tasks_and_nothing_else(tmp_path: Path):
    def results(name: str, tasks: Sequence[str], seeds: list[int], setting: Setting) -> Path:
        folder = tmp_path / name
        write_results(folder, sequence_names=singles(tasks), settings=[setting], seeds=seeds)
        return folder

    plain = small("finetuning")
    whole = write_reference(results("all", TASKS, [0, 1, 2], plain), "set", tmp_path / "whole")
    begun = results("begun", TASKS[:2], [0, 1], plain)
    first = write_reference(begun, "set", tmp_path / "grown")
    before = first.read_bytes()
    for name, seeds, setting, message in (
        ("again", [1, 2], plain, f"the set has {min(TASKS[:2])}, seed 1, already"),
        ("other", [2], small("finetuning", env=MetaWorldConfig(reward="v2")), "differ"),
    ):
        with pytest.raises(ValueError, match=message):
            write_reference(results(name, TASKS, seeds, setting), "set", tmp_path / "grown")
        assert first.read_bytes() == before
    write_reference(results("more", TASKS, [2], plain), "set", tmp_path / "grown")
    rest = results("rest", TASKS[2:], [0, 1], plain)
    grown = write_reference(rest, "set", tmp_path / "grown")
    assert grown.read_bytes() == whole.read_bytes()
    record = json.loads((tmp_path / "grown" / "set.json").read_text())
    assert record["tasks"] == sorted(TASKS)
    parts = [(part["tasks"], part["seeds"]) for part in record["history"]]
    assert parts == [(sorted(TASKS[:2]), [0, 1]), (sorted(TASKS), [2]), ([TASKS[2]], [0, 1])]
