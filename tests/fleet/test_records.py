"""Rows and states that a group leaves in its segments' folders."""

import csv
import math
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from cwbench.fleet.records import Records
from cwbench.fleet.state import GroupState, RunState
from cwbench.learner import Trainer
from cwbench.reports.analysis.provenance import versions_of
from cwbench.rollout.episodes import EvalResult
from cwbench.spec.config import (
    MetaWorldConfig,
    MethodConfig,
    NetworkConfig,
    PointMassConfig,
    SACConfig,
    ScheduleConfig,
)
from cwbench.spec.segment import Segment, Setup
from cwbench.store.files import read_json, write_json
from cwbench.store.results import Store


@pytest.fixture
def records(make_trainer: Callable[..., Trainer], tmp_path: Path) -> Records:
    schedule = ScheduleConfig(steps_per_task=60, eval_every=30, eval_episodes=2)
    setup = Setup(
        "finetuning", MethodConfig(), SACConfig(), NetworkConfig(), PointMassConfig(), schedule
    )
    segments = [Segment(setup, seed, ("reach-0-1",)) for seed in range(2)]
    store = Store(tmp_path)
    for segment in segments:
        store.folder(segment).create(segment, {})
    folders = [store.folder(segment) for segment in segments]
    state = GroupState([RunState(), RunState()], step=30)
    return Records(segments, folders, state, make_trainer([0, 1]))


def lines(records: Records, run: int, table: str) -> list[str]:
    return (records.folders[run].path / table).read_text().splitlines()


def test_an_evaluation_has_the_counts_that_its_tasks_have(records: Records) -> None:
    records.add_evaluation(30, 0, [EvalResult(1, 0.5, 50, 0.1)])
    tests = {"v3_any": 1, "v3_last": 0, "v1_any": 2}
    records.add_evaluation(30, 1, [EvalResult(1, 0.5, 50, 0.1, tests)])
    header, row = "step,eval_position,eval_task,episodes,successes,mean_return", "30,0,reach-0-1,2"
    assert lines(records, 0, "evals.csv") == [header, f"{row},1,0.5"]
    more = [f"{header},v3_last,v1_any,v1_last", f"{row},1,0.5,0,2,nan"]
    assert lines(records, 1, "evals.csv") == more
    assert [run.last_success for run in records.state.runs] == [0.5, 0.5]
    assert [run.counts.eval_steps for run in records.state.runs] == [50, 50]


@pytest.mark.parametrize(("success", "rate"), [("any", 1.0), ("last", 0.5)])
def test_the_latest_success_is_counted_as_the_environment_counts(
    success: Any, rate: float, records: Records
) -> None:
    """In status.json and in the table of progress; evals.csv has all counts."""
    env = MetaWorldConfig(success=success)
    records.segments = [replace(own, setup=replace(own.setup, env=env)) for own in records.segments]
    tests = {"v3_any": 2, "v3_last": 1, "v1_any": 0}
    records.add_evaluation(30, 0, [EvalResult(2, 0.5, 50, 0.1, tests)])
    assert records.folders[0].status()["success"] == records.state.runs[0].last_success == rate
    assert lines(records, 0, "evals.csv")[1] == "30,0,reach-0-1,2,2,0.5,1,0,nan"


def test_episodes_are_counted_from_row_to_row(records: Records) -> None:
    counts = records.state.runs[1].counts
    counts.episodes, counts.successes, counts.returns = 4, 3, 10.0
    records.trainer.train(2)
    records.add_training_row()
    records.add_training_row()
    counts.episodes += 2
    counts.returns += 3.0
    records.add_training_row()
    first, second, third = csv.DictReader(lines(records, 1, "train.csv"))
    assert (first["episodes"], first["successes"], first["mean_return"]) == ("4", "3", "2.5")
    assert (second["episodes"], second["mean_return"]) == ("0", "nan")
    assert (third["episodes"], third["successes"], third["mean_return"]) == ("2", "0", "1.5")
    assert float(first["alpha"]) == pytest.approx(
        records.trainer.params["log_alpha"][1, 0].exp().item()
    )


def test_rows_are_of_the_current_task_and_steps_of_all(records: Records) -> None:
    """In the second of two tasks."""
    tasks = ("reach-0-1", "reach-2-1")
    records.segments = [replace(own, tasks=tasks) for own in records.segments]
    log_alpha = torch.tensor([[0.0, 1.0], [2.0, 3.0]])
    records.trainer.params["log_alpha"] = log_alpha
    records.trainer.value = {"mean": 10 + log_alpha, "std": 20 + log_alpha}
    records.trainer.position = 1
    records.add_training_row()
    for run, own in enumerate((1.0, 3.0)):
        [row] = csv.DictReader(lines(records, run, "train.csv"))
        assert float(row["alpha"]) == pytest.approx(math.exp(own))
        assert (float(row["value_mean"]), float(row["value_std"])) == (10 + own, 20 + own)
    records.add_evaluation(30, 0, [EvalResult(2, 0.5, 50, 0.1), EvalResult(1, 0.5, 60, 0.1)])
    assert records.state.runs[0].counts.eval_steps == 110
    assert records.state.runs[0].last_success == 0.5  # on the current task


def test_a_record_stays_as_the_first_session_wrote_it(records: Records) -> None:
    """Another session, maybe with other code, is described in the status."""
    segment, folder = records.segments[0], records.folders[0]
    before = read_json(folder.path / "segment.json")
    folder.create(segment, {"command": "another"})
    assert read_json(folder.path / "segment.json") == before


def test_what_a_run_has_taken_is_its_own_share(records: Records) -> None:
    """While its method retrains: 30 such updates before, 5 of 40 now."""
    trainer, counts = records.trainer, records.state.runs[1].counts
    trainer.updates, trainer.retrain_updates, trainer._retrains = 100, 30, range(95, 135)
    assert trainer.retraining == (5, 40)
    counts.train_steps, counts.eval_steps, counts.selection_steps = 1, 2, 3
    counts.extra_steps, counts.unstable_episodes, counts.method_bytes = 4, 5, 6
    found = records.numbers(1)["resources"]
    assert found == {
        "train_steps": 1, "eval_steps": 2, "selection_steps": 3, "extra_steps": 4,
        "unstable_episodes": 5, "method_bytes": 6, "updates": 65, "retrain_updates": 35,
        "replay_bytes": trainer.replay.bytes / 2,
        "parameters": sum(p.numel() for p in trainer.params.values()) / 2,
    }  # fmt: skip


def test_evaluations_while_a_method_retrains_are_rows_of_updates(records: Records) -> None:
    records.add_retraining(35, 1, [EvalResult(1, 0.5, 50, 0.1)])
    header = "updates,eval_position,eval_task,episodes,successes,mean_return"
    assert lines(records, 1, "retraining.csv") == [header, "35,0,reach-0-1,2,1,0.5"]
    assert records.state.runs[1].counts.eval_steps == 50


def test_a_diverged_run_says_at_which_step(records: Records) -> None:
    records.set_status(0, "diverged")
    status = records.folders[0].status()
    assert (status["state"], status["message"]) == ("diverged", "weights are not finite at step 30")
    assert status["resources"]["updates"] == 0 and records.folders[1].state == "pending"


def test_retraining_is_recorded_until_something_else_is(records: Records) -> None:
    folder = records.folders[1]
    records.set_progress((35, 100))
    assert folder.status()["state"] == "running" and folder.status()["retraining"] == [35, 100]
    records.begin_session()  # the process was killed
    assert folder.status()["retraining"] == []
    records.set_progress((35, 100))
    records.set_status(1, "done")
    assert folder.status()["retraining"] == []


def test_sessions_are_listed_by_their_first_steps(records: Records) -> None:
    """Also after those of version 0.1, which had another name for them."""
    folder = records.folders[0]
    folder.set_status("running", step=10, sittings=[0])
    records.begin_session()
    records.state.step = 40
    records.begin_session()
    record = read_json(folder.path / "status.json")
    assert record["sessions"] == [0, 30, 40] and record["started_step"] == 40


def test_a_session_with_other_code_or_device_is_described(records: Records) -> None:
    """Those that go on with what the record names add nothing, however many there are."""
    first = {"versions": {"commit": "a"}, "device": {"type": "cpu"}}
    other = {"versions": {"commit": "b"}, "device": {"type": "cpu"}}
    folder = records.folders[0]
    write_json(folder.path / "segment.json", read_json(folder.path / "segment.json") | first)
    for step, described in ((0, first), (10, first), (20, other), (30, other), (40, first)):
        records.state.step = step
        records.provenance = lambda _, what=described: what | {"created": time.time()}  # type: ignore[misc]
        records.begin_session()
    status = folder.status()
    assert status["sessions"] == [0, 10, 20, 30, 40]
    assert status["resumed_with"] == [{"step": 20, **other}, {"step": 40, **first}]
    record = read_json(folder.path / "segment.json") | {"status": status}
    assert versions_of([record]) == {"commit": "a, b"}
