"""A reference set that is made of runs."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sample_results import Setting, add_counts, singles, small, write_results

from cwbench import sequences
from cwbench.reports import build
from cwbench.reports.analysis import reference
from cwbench.reports.analysis.make_reference import main, write_reference
from cwbench.spec.config import MetaWorldConfig
from cwbench.spec.errors import UserError
from cwbench.spec.statistics import MORE_SUCCESSES

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


@pytest.mark.parametrize(
    ("results", "name", "message"),
    [
        ("nowhere", "x", "no results folder at"),
        ("results", "../x", "../x"),
        ("results", "x", "has no finished fine-tuning run of a single task"),
        ("single", "x", "set'"),  # which is a file
    ],
)
def test_bad_input_is_one_line(
    results: str, name: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    for folder, sequence in (("results", "cw3-1"), ("single", "single-push")):
        root = tmp_path / folder
        write_results(root, sequence_names=[sequence], settings=[small("finetuning")], seeds=[0])
    (tmp_path / "set").touch()
    assert main([str(tmp_path / results), name, str(tmp_path / "set")]) == 2
    output, errors = capsys.readouterr()
    assert not output and errors.count("\n") == 1 and message in errors


def test_only_finished_runs_of_fine_tuning_on_one_task_with_equal_settings(tmp_path: Path):
    one, plain = ["single-push"], small("finetuning")
    write_results(tmp_path / "r", sequence_names=one, settings=[plain], seeds=[0, 1])
    for seed, setting, sequence in ((2, plain, "single-push"), (3, plain, "cw3-1")):
        write_results(
            tmp_path / "r",
            sequence_names=[sequence],
            settings=[setting],
            seeds=[seed],
            name=f"{seed}",
            upto=0.5 if seed == 2 else None,
        )
    write_results(
        tmp_path / "r", sequence_names=one, settings=[small("ewc")], seeds=[4], name="ewc"
    )
    rows = pd.read_csv(write_reference(tmp_path / "r", "set", tmp_path))
    assert set(rows["seed"]) == {0, 1} and len(rows) == 2 * 10 and set(rows["task"]) == {"push"}
    other = small("finetuning", env=MetaWorldConfig(reward="v2"))
    write_results(tmp_path / "r", sequence_names=one, settings=[other], seeds=[5], name="v2")
    with pytest.raises(UserError, match="different settings"):
        write_reference(tmp_path / "r", "set2", tmp_path)


def test_damage_and_an_interrupted_write_leave_a_set_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    for seed in range(2):
        root, setting = tmp_path / str(seed), small("finetuning")
        write_results(root, sequence_names=["single-push"], settings=[setting], seeds=[seed])
    arguments = [str(tmp_path / "0"), "set", str(tmp_path)]
    assert main(arguments) == 0
    before = [(tmp_path / f"set.{end}").read_bytes() for end in ("csv.gz", "json")]
    with monkeypatch.context() as patch:
        patch.setattr("gzip.GzipFile.write", lambda *_: (_ for _ in ()).throw(OSError("full")))
        assert main([str(tmp_path / "1"), *arguments[1:]]) == 2
    assert [(tmp_path / f"set.{end}").read_bytes() for end in ("csv.gz", "json")] == before
    (tmp_path / "set.json").write_text("{")
    assert main([str(tmp_path / "1"), *arguments[1:]]) == 2
    assert "set.json" in capsys.readouterr().err and (tmp_path / "set.json").read_text() == "{"
    (tmp_path / "set.json").write_bytes(before[1])
    for half in (before[0][:-20], before[0][:40] + bytes(8) + before[0][48:]):
        (tmp_path / "set.csv.gz").write_bytes(half)
        assert main([str(tmp_path / "1"), *arguments[1:]]) == 2
        assert "set.csv.gz: " in capsys.readouterr().err


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
        ("often", [2], small("finetuning", schedule={"eval_every": 500}), "differ"),
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


def test_a_way_of_counting_that_some_runs_lack_is_left_out(tmp_path: Path):
    """As those of early versions do."""
    results, one = tmp_path / "results", ["single-push"]
    write_results(results, sequence_names=one, settings=[small("finetuning")], seeds=[0])
    add_counts(results)
    rows = pd.read_csv(write_reference(results, "all", tmp_path))
    assert {*MORE_SUCCESSES} < {*rows.columns} and (rows["v3_last"] < rows["successes"]).any()
    write_results(results, sequence_names=one, settings=[small("finetuning")], seeds=[1], name="b")
    rows = pd.read_csv(write_reference(results, "some", tmp_path))
    assert set(rows["seed"]) == {0, 1} and not {*MORE_SUCCESSES} & {*rows.columns}
