"""From records and rows to groups: grids, references, joint training."""

from pathlib import Path

import numpy as np
import pytest
from sample_results import ABOUT, run_entry, small, write_results

from cwbench import sequences
from cwbench.reports import build
from cwbench.reports.analysis.scores import Scores
from cwbench.reports.analysis.study import Protocol
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
