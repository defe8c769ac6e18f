"""From records and rows to groups: grids, references, joint training."""

import gzip
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from sample_results import ABOUT, Setting, run_entry, singles, small, write_results

from cwbench import sequences
from cwbench.reports import build
from cwbench.reports.analysis import reference
from cwbench.reports.analysis.make_reference import write_bank
from cwbench.reports.analysis.scores import Scores
from cwbench.reports.analysis.study import Protocol
from cwbench.spec.config import MetaWorldConfig
from cwbench.spec.segment import Segment
from cwbench.store.results import EVAL_COLUMNS, Store

TASKS = sequences.get("cw3-1").tasks


def protocol(steps: int, every: int) -> Protocol:
    return Protocol("x", {}, {"steps_per_task": steps, "eval_every": every})


def test_every_step_has_its_place_on_the_grid():
    # 100 steps a task, evaluated every 30: at 30, 60, 90 and at the task's end.
    grid = protocol(100, 30)
    assert grid.evaluations == 4
    step = np.array([30, 60, 90, 100, 130, 200, 0, 45, 110])
    position, evaluation = grid.evaluation(step)
    assert evaluation.tolist() == [0, 1, 2, 3, 0, 3, -1, -1, -1]
    assert position[:6].tolist() == [0, 0, 0, 0, 1, 1]


def test_sequences_that_share_a_beginning_share_its_rows(tmp_path: Path):
    write_results(tmp_path, sequence_names=["cw3-1", "cw6-1"], settings=[small("ewc")], seeds=[0])
    short, long = build.read(tmp_path).groups
    assert np.array_equal(short.success[0], long.success[0, :3, :, :3], equal_nan=True)
    assert not np.isnan(long.success[0, 5]).any()


@pytest.fixture
def bank(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A reference bank in which every task has a success rate of 0.5 throughout."""
    folder = tmp_path / "bank"
    folder.mkdir()
    monkeypatch.setattr(reference, "bank_folder", lambda: folder)
    reference.banks.cache_clear()
    setup = small("finetuning").setup.record()
    record = {"env": setup["env"], "schedule": setup["schedule"], "versions": {}, "command": ""}
    (folder / "small.json").write_text(json.dumps(record))
    rows = [
        f"{task},{seed},{step},10,5"
        for task in TASKS
        for seed in range(3)
        for step in range(1000, 11_000, 1000)
    ]
    with gzip.open(folder / "small.csv.gz", "wt") as stream:
        stream.write("\n".join(["task,seed,step,episodes,successes", *rows]) + "\n")
    yield folder
    reference.banks.cache_clear()


def test_the_bank_serves_tasks_without_runs(tmp_path: Path, bank: Path):
    results = tmp_path / "results"
    write_results(results, sequence_names=["cw3-1"], settings=[small("ewc")], seeds=range(2))
    one = singles([TASKS[0]])
    write_results(results, sequence_names=one, settings=[small("finetuning")], name="r", seeds=[0])
    study = build.read(results)
    scores = Scores(study, study.protocols[0])
    assert scores.reference.sources == {
        TASKS[0]: "1 runs of this folder",
        TASKS[1]: "reference bank small",
        TASKS[2]: "reference bank small",
    }
    [group] = study.of(study.protocols[0], "cw3")
    area = np.einsum("rkek->rke", group.success).mean((0, 2))
    got = scores.task_score([(group, 1)], "forward_transfer")
    assert got.value == pytest.approx((area[1] - 0.5) / 0.5)


def test_a_bank_made_of_runs_gives_what_the_runs_give(tmp_path: Path, bank: Path):
    results = tmp_path / "results"
    write_results(results, sequence_names=singles(TASKS), settings=[small("finetuning")])
    file = write_bank(results, "made", bank)  # "small" comes later in the alphabet
    reference.banks.cache_clear()
    study = build.read(results)
    own = reference.find(study, study.protocols[0])
    shutil.rmtree(results)
    write_results(results, sequence_names=["cw3-1"], settings=[small("ewc")])
    other = build.read(results)
    banked = reference.find(other, other.protocols[0])
    assert set(own.curves) == set(banked.curves) == set(TASKS)
    for task in TASKS:
        assert np.array_equal(own.curves[task], banked.curves[task])
    record = json.loads((bank / "made.json").read_text())
    assert record["sac"]["batch_size"] and "machine" not in record
    assert file.stat().st_size < 20_000


def test_a_bank_takes_further_seeds_and_nothing_else(tmp_path: Path):
    def results(name: str, seeds: list[int], setting: Setting) -> Path:
        folder = tmp_path / name
        write_results(folder, sequence_names=singles(TASKS), settings=[setting], seeds=seeds)
        return folder

    plain = small("finetuning")
    whole = write_bank(results("all", [0, 1, 2], plain), "bank", tmp_path / "whole")
    first = write_bank(results("first", [0, 1], plain), "bank", tmp_path / "grown")
    before = first.read_bytes()
    for name, seeds, setting, message in (
        ("again", [1, 2], plain, r"seeds \[1\] already"),
        ("other", [2], small("finetuning", env=MetaWorldConfig(reward="v2")), "differ"),
    ):
        with pytest.raises(ValueError, match=message):
            write_bank(results(name, seeds, setting), "bank", tmp_path / "grown")
        assert first.read_bytes() == before
    grown = write_bank(results("more", [2], plain), "bank", tmp_path / "grown")
    assert grown.read_bytes() == whole.read_bytes()
    record = json.loads((tmp_path / "grown" / "bank.json").read_text())
    assert [part["seeds"] for part in record["history"]] == [[0, 1], [2]]


def test_a_bank_of_other_settings_is_not_used(tmp_path: Path, bank: Path):
    results = tmp_path / "results"
    other = small("ewc", env=MetaWorldConfig(reward="v2"))
    write_results(results, sequence_names=["cw3-1"], settings=[other], seeds=[0])
    study = build.read(results)
    assert Scores(study, study.protocols[0]).reference.curves == {}


def test_the_package_has_no_unreadable_bank():
    reference.banks.cache_clear()
    for _, settings, rows in reference.banks():
        assert set(settings) == {"env", "schedule"}
        assert list(rows.columns) == ["task", "seed", "step", "episodes", "successes"]


def test_joint_training_has_performance_and_nothing_else(tmp_path: Path):
    """One segment for all tasks: evaluations of every task from the start, over three windows."""
    setting, store = small("multitask"), Store(tmp_path)
    sequence = sequences.get("cw3-1")
    segment = Segment(setting.setup, 0, sequence.tasks)
    folder = store.folder(segment)
    folder.create(segment, ABOUT | {"joint": True})
    rows = [
        (step, position, task, 10, 2 * (position + 1), 0.0)
        for step in range(1000, 31_000, 1000)
        for position, task in enumerate(sequence.tasks)
    ]
    folder.append("evals.csv", EVAL_COLUMNS, rows)
    folder.set_status("done", step=30_000)
    run = run_entry(sequence, setting, 0, [segment]) | {"steps": [30_000]}
    store.add_experiment({"name": "joint", "runs": [run]})
    study = build.read(tmp_path)
    assert study.problems == []
    scores = Scores(study, study.protocols[0])
    assert scores.score(study.groups, "average_performance").value == pytest.approx(0.4)
    assert "trained at once" in scores.score(study.groups, "forgetting").why
    assert "trained at once" in scores.score(study.groups, "forward_transfer").why


def test_the_page_is_replaced_in_one_step(tmp_path: Path):
    write_results(tmp_path, sequence_names=["cw3-1"], settings=[small("ewc")], seeds=[0], upto=0.2)
    for _ in range(2):
        build.write_page(tmp_path, tmp_path / "report")
    assert [path.name for path in (tmp_path / "report").iterdir()] == ["index.html"]
