"""From records and rows to groups: shared beginnings, joint training, counts of success."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sample_results import ABOUT, change_experiment, run_entry, singles, small, write_results

from cwbench import load_runs, sequences
from cwbench.reports import build
from cwbench.reports.analysis.bands import average_runs
from cwbench.reports.analysis.reference import find
from cwbench.reports.analysis.scores import AT_ONCE, Scores, run_metrics
from cwbench.reports.analysis.study import Options
from cwbench.reports.page.page import _cards
from cwbench.reports.tables import details
from cwbench.reports.tables.headline import stacked
from cwbench.spec.config import MetaWorldConfig
from cwbench.spec.errors import UserError
from cwbench.spec.segment import Segment
from cwbench.spec.statistics import EVAL_COLUMNS
from cwbench.store import runs as stored
from cwbench.store.results import Store


def test_sequences_that_share_a_beginning_share_its_rows(tmp_path: Path):
    write_results(tmp_path, sequence_names=["cw3-1", "cw6-1"], settings=[small("ewc")], seeds=[0])
    short, long = build.read(tmp_path).groups
    assert np.array_equal(short.success[0], long.success[0, :3, :, :3], equal_nan=True)
    assert not np.isnan(long.success[0, 5]).any()


def test_episodes_count_as_the_protocol_counts_them(tmp_path: Path):
    """With `--success last`, unless the reader asks for another count."""
    last = small("ewc", env=MetaWorldConfig(success="last"))
    write_results(tmp_path, sequence_names=["cw3-1"], settings=[last], seeds=[0])
    for file in tmp_path.glob("segments/*/evals.csv"):
        table = pd.read_csv(file).assign(successes=8, v3_last=3)
        table.to_csv(file, index=False)
    for success, rate in ((None, 0.3), ("v3-last", 0.3), ("v3-any", 0.8)):
        [group] = build.read(tmp_path, Options(success=success)).groups
        assert np.nanmax(group.success) == np.nanmin(group.success) == rate


def test_logged_statistics_are_each_runs_own(tmp_path: Path):
    write_results(tmp_path, sequence_names=["cw3-1"], settings=[small("ewc")], seeds=[0, 1])
    for file in tmp_path.glob("segments/*-s1-*/train.csv"):
        pd.read_csv(file).assign(q=9.0).to_csv(file, index=False)
    [group] = build.read(tmp_path).groups
    assert [set(run.ravel().tolist()) for run in group.logged["q"]] == [{3.0}, {9.0}]


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
    assert scores.task_score([(study.groups[0], 1)], "forgetting").why == AT_ONCE
    assert scores.task_score([(study.groups[0], 1)], "average_performance").value == 0.4
    [row] = run_metrics(stored.load_runs(tmp_path)).to_dict("records")
    assert row["average_performance"] == pytest.approx(0.4) and row["worst_task"] == 0.2
    assert np.isnan([row["forgetting"], row["backward_transfer"], row["drop_depth"]]).all()
    for block in details.learning(scores, "cw3"):
        assert {cell.why for _, [cell] in block.rows} == {AT_ONCE} and len(block.rows) == 3
    [group] = study.groups
    assert average_runs(group) == pytest.approx(np.full((1, 30), 0.4))  # from the first evaluation


def ask(asked: dict[str, Any], protocol: str, created: float) -> None:
    label = f"ewc ({protocol})"  # without what the protocol sets
    runs = [run | {"protocol": protocol, "label": label} for run in asked["runs"]]
    asked |= {"created": created, "runs": runs}


@pytest.mark.parametrize("first", ["paper", "mine"])
def test_equal_settings_under_two_protocol_names_are_not_averaged(tmp_path: Path, first: str):
    """A run that was asked for under both names is under both."""
    for name, seeds in {"paper": [0, 1], "mine": [1, 2]}.items():
        settings = [small("ewc")]
        write_results(tmp_path, sequence_names=["cw3-1"], settings=settings, seeds=seeds, name=name)
        for file in list(tmp_path.glob("experiments/*.json")):
            if json.loads(file.read_text())["name"] == name:
                created = 1.0 if name == first else 2.0
                change_experiment(file, lambda asked: ask(asked, name, created))  # noqa: B023
    study = build.read(tmp_path)
    found = {group.protocol.name: group for group in study.groups}
    assert {name: group.seeds for name, group in found.items()} == {"mine": [1, 2], "paper": [0, 1]}
    assert all(group.label == f"ewc ({name})" for name, group in found.items())
    assert np.array_equal(found["mine"].success[0], found["paper"].success[1], equal_nan=True)
    assert len({group.key for group in study.groups}) == 2  # they have places on one page
    protocols = {run.seed: run.protocol for run in load_runs(tmp_path)}
    assert protocols == {0: "paper", 1: first, 2: "mine"}
    assert sorted(load_runs(tmp_path).metrics["seed"]) == [0, 1, 2]
    assert "3 / 3" in _cards(study)  # runs


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


def test_runs_without_a_count_are_problems(counted: Path):
    write_results(counted, sequence_names=["cw3-2"], settings=[small("ewc")], seeds=[0], name="old")
    study = build.read(counted, Options(success="v1-any"))
    assert study.problems[0].startswith("cw3-2-") and "v1-any are left out" in study.problems[0]
    known, unknown = study.groups
    assert np.isnan(unknown.success).all() and not np.isnan(known.success[:, -1]).any()


def damage(folder: Path, segment: str, column: str, value: float) -> str:
    """A wrong number in the middle of an evals.csv; returns its folder's name."""
    [file] = folder.glob(f"segments/{segment}*/evals.csv")
    table = pd.read_csv(file).astype({column: float})
    table.loc[table.index[table["step"] == 3000][0], column] = value
    table.to_csv(file, index=False, na_rep="nan")
    return file.parent.name


@pytest.mark.parametrize("value", [99, np.nan])
@pytest.mark.parametrize("column", ["v3_last", "v1_any", "v1_last"])
def test_a_damaged_number_is_a_problem_in_every_count(counted: Path, column: str, value: float):
    whole, success = build.read(counted), column.replace("_", "-")
    name = damage(counted, "ewc-2-window-close-s0", column, value)
    study = build.read(counted)
    assert study.problems == [
        f"{name}/evals.csv: {value:g} successes ({column}) in 10 episodes at step 3000 "
        "cannot be right; not used"
    ]
    assert_array_equal(study.groups[0].success, whole.groups[0].success)
    chosen = build.read(counted, Options(success=success))
    assert chosen.problems[0] == study.problems[0]
    assert "1 evaluation is missing" in chosen.problems[1] and len(chosen.problems) == 2


@pytest.mark.parametrize("column", ["v1_any", "successes"])
def test_a_damaged_number_does_not_change_how_success_is_counted(counted: Path, column: str):
    """Its setup was counted that way: only the one cell is lacking."""
    damage(counted, "ewc-2-window-close-s0", column, 99)
    study = build.read(counted)
    published = study.as_published(study.protocols[0], "v1-any")
    assert published.options.success == "v1-any"
    assert np.isnan(published.groups[0].success[0, 1, 2, 0]) == (column == "v1_any")
    chosen = build.read(counted, Options(success="v1-any"))
    assert not any("left out" in problem for problem in chosen.problems)


def test_a_task_without_a_test_and_a_run_without_evaluations_are_no_problem(counted: Path):
    """Meta-World V1 has no test for most tasks: those evaluations were not counted that way."""
    for file in counted.glob("segments/*/evals.csv"):
        table = pd.read_csv(file)
        table.loc[table["eval_position"] == 1, ["v1_any", "v1_last"]] = np.nan
        table.to_csv(file, index=False, na_rep="nan")
    write_results(
        counted, sequence_names=["cw3-2"], settings=[small("ewc")], seeds=[0], name="b", upto=0
    )
    study = build.read(counted)
    assert study.problems == []
    some, none = study.groups
    assert some.has_count("v3-last") and not some.has_count("v1-any")
    assert none.has_count("v1-any")
    chosen = build.read(counted, Options(success="v1-any")).problems
    assert [one.split(":")[0] for one in chosen if "left out" in one] == [some.key]


def test_a_count_that_no_run_has_is_refused(tmp_path: Path):
    write_results(tmp_path, sequence_names=["cw3-1"], settings=[small("ewc")], seeds=[0])
    with pytest.raises(UserError, match=r"--success v1-any: .*--success v3-any"):
        build.read(tmp_path, Options(success="v1-any"))


def test_runs_on_other_tasks_under_the_same_name_are_not_averaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """As after a user's file of a sequence was edited."""
    lists = [sequences.get(name).tasks for name in ("cw3-1", "cw3-2")]
    for tasks in lists:
        edited = sequences.Sequence("mine", tasks)
        monkeypatch.setattr(sequences, "get", lambda name, edited=edited: edited)
        write_results(
            tmp_path, sequence_names=["mine"], settings=[small("ewc")], seeds=[0, 1], name=tasks[0]
        )
    study = build.read(tmp_path)
    assert sorted(group.tasks for group in study.groups) == sorted(lists)
    assert all(group.seeds == [0, 1] for group in study.groups)
    first, second = sorted(group.sequence for group in study.groups)
    assert first != second
    [problem] = study.problems
    assert problem.startswith("runs on mine have different tasks")
    assert first in problem and second in problem


def test_two_versions_of_a_method_are_not_two_settings_of_it(tmp_path: Path):
    """The defaults with the old code, another option with the new one, and a method unchanged."""
    old, new = "1a2b3c4d5e6f", "9f8e7d6c5b4a"
    settings = [
        small("Drift", source=old),
        small("Drift", source=new, coef=1.0),
        small("Other", source=new),
        small("ewc"),
    ]
    write_results(tmp_path, sequence_names=["cw3-1"], settings=settings, seeds=[0])
    study = build.read(tmp_path)
    [block, *_] = stacked(Scores(study, study.protocols[0]), "cw3")
    assert block.columns == ("EWC", "Drift (1a2b)", "Drift coef=1 (9f8e)", "Other")
    [problem] = study.problems
    assert study.notes == [problem]  # which the board shows
    assert "Drift was edited" in problem
    assert f"sources/{old}.py, sources/{new}.py" in problem
    with pytest.raises(UserError, match=r"results have ewc; Drift \(1a2b\); Drift coef=1 \(9f8e"):
        build.read(tmp_path, Options(methods=("Drift (0000)",)))


def test_methods_of_several_folders_are_not_versions(tmp_path: Path):
    """EWC is built in; in one folder a method of one's own stands beside it."""
    both = [small("ewc", coef=2.0), small("Drift", source="1a2b3c4d5e6f")]
    for name, settings in {"one": [small("ewc")], "other": both}.items():
        write_results(tmp_path / name, sequence_names=["cw3-1"], settings=settings, seeds=[0])
    study = build.read(tmp_path / "one", more=[tmp_path / "other"])
    assert sorted(group.title for group in study.groups) == ["Drift", "EWC", "EWC coef=2"]
    assert not any("edited" in problem for problem in study.problems)


def test_what_is_left_out_is_a_reference_still(tmp_path: Path):
    """The numbers of a method do not depend on what is reported with it."""
    settings, tasks = [small("finetuning"), small("ewc")], sequences.get("cw3-1").tasks
    write_results(tmp_path, sequence_names=["cw3-1", "cw3-2"], settings=settings, seeds=range(2))
    alone = singles(tasks)
    write_results(tmp_path, sequence_names=alone, settings=settings[:1], seeds=range(3))
    whole = build.read(tmp_path)
    some = build.read(tmp_path, Options(sequences=("cw3-1",), methods=("ewc",)))
    assert [(group.sequence, group.label) for group in some.groups] == [("cw3-1", "ewc")]
    assert len(some.used) == 6  # two seeds, three tasks
    scores = [Scores(study, study.protocols[0]) for study in (whole, some)]
    groups = [[g for g in s.study.groups if g.key == some.groups[0].key] for s in scores]
    found = [s.score(g, "forward_transfer") for s, g in zip(scores, groups, strict=True)]
    assert found[0].value == found[1].value and np.isfinite(found[0].value)
    curves = find(some, some.protocols[0], some.groups[0]).curves.values()
    assert {one.source for one in curves} == {"3 runs of this folder"}
    assert not any("of no experiment" in problem for problem in some.problems)


def test_one_of_several_protocols_is_reported_alone(tmp_path: Path):
    """By its name and, where two have one name, with its mark; a window need only fit its tasks."""
    short = {"steps_per_task": 1000, "eval_every": 1000}
    smoke = small("recall", protocol="smoke")
    settings = [small("ewc"), smoke, small("recall", protocol="smoke", schedule=short)]
    for one, name in zip(settings, "abc", strict=True):
        write_results(tmp_path, sequence_names=["cw3-1"], settings=[one], seeds=[0], name=name)
    whole = build.read(tmp_path)
    first, *same = whole.protocols
    assert [protocol.title for protocol in whole.protocols] == [first.title, "smoke", "smoke"]

    def shown(*patterns: str, window: int | None = None) -> list[str]:
        study = build.read(tmp_path, Options(protocols=patterns, window=window))
        return [protocol.key for protocol in study.protocols]

    assert shown(first.title) == [first.key]
    assert shown("smoke") == shown("smok*") == [protocol.key for protocol in same]
    for protocol in same:
        assert shown(whole.slug(protocol)) == [protocol.key]
    assert shown(first.title, window=3) == [first.key]
    with pytest.raises(UserError, match="a window of 3"):
        shown("smoke", window=3)
    with pytest.raises(UserError, match=r"no run of ewc under smoke$"):
        build.read(tmp_path, Options(methods=("ewc",), protocols=("smoke",)))
