"""From records and rows to groups: grids, references, joint training."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sample_results import ABOUT, run_entry, small, write_results

from cwbench import sequences
from cwbench.reports import build
from cwbench.reports.analysis.scores import Scores
from cwbench.reports.analysis.study import Options, Protocol
from cwbench.reports.tables.verify import recipe_of, recipe_options, sign, verify
from cwbench.spec.segment import Segment
from cwbench.spec.statistics import EVAL_COLUMNS
from cwbench.store.results import Store

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


def add_counts(root: Path) -> None:
    """Other counts than `successes`, which the tests can tell apart."""
    for file in root.glob("segments/*/evals.csv"):
        table = pd.read_csv(file)
        table["v3_last"] = table["successes"] // 2
        table["v1_any"] = table["episodes"] - table["successes"]
        table["v1_last"] = 0
        table.to_csv(file, index=False)


@pytest.fixture
def counted(tmp_path: Path) -> Path:
    """Two runs, each evaluation counted in four ways."""
    write_results(tmp_path, sequence_names=["cw3-1"], settings=[small("ewc")], seeds=[0, 1])
    add_counts(tmp_path)
    return tmp_path


def test_a_report_counts_success_as_it_is_told(counted: Path):
    [group] = build.read(counted).groups
    for success, rates in {
        "v3-any": group.success,
        "v1-any": 1 - group.success,
        "v1-last": 0 * group.success,
    }.items():
        study = build.read(counted, Options(success=success))
        assert study.problems == []
        assert np.allclose(study.groups[0].success, rates, equal_nan=True)


def test_published_numbers_are_next_to_runs_counted_as_they_were(counted: Path):
    def table(success: str | None = None) -> tuple[str, str]:
        [(_, scores, made)] = build.tables_of(
            build.read(counted, Options(success=success)), "paper-cw3"
        )
        text = sign(scores, made, "csv", "bootstrap")
        again = build.read(counted, recipe_options(recipe_of(text)))
        assert verify(text, again).differences == []
        return made.caption, text

    default, v1, v3 = table(), table("v1-any"), table("v3-any")
    assert "success by Meta-World V1's test at any step (v1-any)" in default[0]
    assert default == v1 and "(v3-any)" in v3[0] and v3[1] != v1[1]
    [(_, _, own)] = build.tables_of(build.read(counted), "cw3")
    assert "(v3-any)" in own.footer["environment"]
    # One file without the other counts: numbers counted differently never stand in one table.
    file = next(counted.glob("segments/*/evals.csv"))
    pd.read_csv(file).drop(columns="v1_any").to_csv(file, index=False)
    assert table()[0] == v3[0]


def test_runs_without_a_count_are_problems(counted: Path):
    write_results(counted, sequence_names=["cw3-2"], settings=[small("ewc")], seeds=[0], name="old")
    study = build.read(counted, Options(success="v1-any"))
    assert study.problems[0].startswith("cw3-2-") and "v1-any are left out" in study.problems[0]
    known, unknown = study.groups
    assert np.isnan(unknown.success).all() and not np.isnan(known.success[:, -1]).any()


def test_a_count_that_no_run_has_is_refused(tmp_path: Path):
    write_results(tmp_path, sequence_names=["cw3-1"], settings=[small("ewc")], seeds=[0])
    with pytest.raises(ValueError, match=r"--success v1-any: .*--success v3-any"):
        build.read(tmp_path, Options(success="v1-any"))
