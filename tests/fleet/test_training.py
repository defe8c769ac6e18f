"""Fleets side by side in one process: the same numbers, and each its own fate."""

import errno
import itertools
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from cwbench.experiment import toy
from cwbench.experiment.session import Session
from cwbench.fleet.group import Group
from cwbench.fleet.progress import Display
from cwbench.fleet.training import lowest_free
from cwbench.methods.ewc import EWC
from cwbench.planning import plan as planning
from cwbench.planning.plan import Plan
from cwbench.rollout.pool import WorkerError
from cwbench.store import checkpoint
from cwbench.store.results import SegmentFolder, Store
from cwbench.store.runs import load_runs

METHODS = ("finetuning", "ewc", "l2")
TASKS = ("reach-0-1", "reach-2-1000")


def weights(store: Store, plan: Plan) -> Iterator[tuple[str, str, torch.Tensor]]:
    """Everything that segments leave to their children."""
    for segment in plan.segments:
        for name, tensor in checkpoint.load(store.folder(segment).end)[0].items():
            yield segment.folder, name, tensor


@pytest.fixture(scope="module")
def alone(toy_run: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Store, Plan]:
    """Three methods, one fleet after another."""
    root = tmp_path_factory.mktemp("alone")
    store, plan, outcome = toy_run(root, *METHODS, tasks=TASKS, side_by_side=1)
    assert outcome.good and outcome.trained == 6
    return root, store, plan


def assert_same(store: Store, plan: Plan, root: Path, alone: tuple[Path, Store, Plan]) -> None:
    for found, expected in zip(weights(store, plan), weights(*alone[1:]), strict=True):
        assert found[:2] == expected[:2]
        assert torch.equal(found[2], expected[2]), found[:2]
    assert load_runs(root).evals.equals(load_runs(alone[0]).evals)


@pytest.fixture
def most_at_once(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many fleets trained whenever one began."""
    now, counts = list[Group](), list[int]()

    def begin(self: Display, groups: list[Group]) -> None:
        now.extend(groups)
        counts.append(len(now))

    def end(self: Display, groups: list[Group], **_: object) -> None:
        for group in groups:
            now.remove(group)

    monkeypatch.setattr(Display, "begin", begin)
    monkeypatch.setattr(Display, "end", end)
    return counts


def test_fleets_side_by_side_give_the_same_weights(
    alone: Any, toy_run: Any, tmp_path: Path, most_at_once: list[int]
) -> None:
    store, plan, outcome = toy_run(tmp_path, *METHODS, tasks=TASKS, side_by_side=3)
    assert outcome.good and outcome.trained == 6
    assert max(most_at_once) == 3
    assert_same(store, plan, tmp_path, alone)


def test_an_interrupt_pauses_all_fleets_and_all_continue(
    alone: Any, toy_run: Any, tmp_path: Path
) -> None:
    _, _, outcome = toy_run(tmp_path, *METHODS, tasks=TASKS, side_by_side=3, stop_after=8)
    assert outcome.interrupted and not outcome.failed
    found = load_runs(tmp_path)
    assert set(found.runs["state"]) == {"stopped"} and found.runs["step"].between(1, 59).all()
    store, plan, outcome = toy_run(tmp_path, *METHODS, tasks=TASKS, side_by_side=3)
    assert outcome.good
    assert_same(store, plan, tmp_path, alone)


def test_an_error_in_a_method_ends_its_own_fleet_only(
    alone: Any, toy_run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    def broken(self: EWC, position: int) -> None:
        raise RuntimeError("a fault of this method")

    with monkeypatch.context() as patch:
        patch.setattr(EWC, "on_task_end", broken)
        store, plan, outcome = toy_run(tmp_path, *METHODS, tasks=TASKS, side_by_side=3)
    assert list(outcome.failed.values()) == ["a fault of this method"]
    assert outcome.trained == 4 and outcome.skipped == 1
    states = {segment.setup.method: store.folder(segment).state for segment in plan.segments}
    assert states == {"finetuning": "done", "ewc": "pending", "l2": "done"}
    toy_run(tmp_path, *METHODS, tasks=TASKS, side_by_side=3)
    assert_same(store, plan, tmp_path, alone)


def test_an_error_in_an_environment_ends_its_own_fleet_only(
    toy_run: Any, tmp_path: Path, capsys: Any
) -> None:
    """Two fleets of one folder: the task of one cannot be built."""
    both = ("finetuning", "ewc")
    toy_run(tmp_path, "finetuning", tasks=("reach-0-1",))
    _, _, outcome = toy_run(tmp_path, *both, tasks=("reach-0-1", "reach-2-x"), side_by_side=2)
    assert outcome.trained == 1  # EWC's first task, while fine-tuning's second fails
    assert len(outcome.failed) == 2


def test_an_error_in_recording_an_evaluation_ends_its_own_fleet_only(
    toy_run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """Results arrive while the process waits for the workers of any fleet."""
    append = SegmentFolder.append

    def full(self: SegmentFolder, name: str, columns: Any, rows: Any) -> None:
        if name == "evals.csv" and self.path.name.startswith("ewc"):
            raise OSError(errno.EIO, "Input/output error", str(self.path / name))
        append(self, name, columns, rows)

    monkeypatch.setattr(SegmentFolder, "append", full)
    _, _, outcome = toy_run(tmp_path, *METHODS, tasks=TASKS[:1], side_by_side=3)
    assert outcome.trained == 2
    assert [folder.split("-")[0] for folder in outcome.failed] == ["ewc"]


def test_an_environment_that_fails_for_one_run_ends_that_run_only(
    toy_run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """The others of its fleet begin again without it and give the same numbers."""
    seeds = (0, 1, 2, 3, 4)
    toy_run(tmp_path / "well", seeds=seeds, tasks=TASKS)
    learn = Group.learn
    text = "Traceback ...\ncwbench.spec.errors.UserError: task reach: its reward is nan"

    def fail(group: Group, **how: Any) -> None:
        if group.step > 30 and any(segment.seed == 2 for segment in group.segments):
            raise WorkerError(text)
        learn(group, **how)

    monkeypatch.setattr(Group, "learn", fail)
    _, _, outcome = toy_run(tmp_path / "one", seeds=seeds, tasks=TASKS)
    [(name, message)] = outcome.failed.items()
    assert name.startswith("finetuning-1-reach-0-1-s2-")
    assert message == "task reach: its reward is nan"
    assert outcome.trained == 8 and outcome.skipped == 1
    assert "Traceback" not in capsys.readouterr().err
    found, expected = (load_runs(tmp_path / folder).evals for folder in ("one", "well"))
    done = found.groupby("run")["step"].max() == 120
    assert done.sum() == 4
    others = [frame[frame["run"].map(done)] for frame in (found, expected)]
    assert others[0].reset_index(drop=True).equals(others[1].reset_index(drop=True))


@pytest.mark.parametrize(
    ("error", "trained", "failed"),
    [(OSError(errno.EIO, "Input/output error"), 2, [2, 3]), (WorkerError("it broke"), 3, [3])],
)
def test_runs_of_a_group_that_has_ended_stay_done(
    error: Exception,
    trained: int,
    failed: list[int],
    toy_run: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Any,
) -> None:
    """When another group fails, as a whole or with one of its runs; each is counted once."""
    finish = Group.finish

    def fail(group: Group) -> None:
        if any(segment.seed == 3 for segment in group.segments):
            raise error
        finish(group)

    monkeypatch.setattr(Group, "finish", fail)
    store, plan, outcome = toy_run(tmp_path, seeds=(0, 1, 2, 3), tasks=TASKS[:1], groups=2)
    assert (outcome.trained, outcome.elsewhere) == (trained, 0)
    assert [s.seed for s in plan.segments if s.folder in outcome.failed] == failed
    assert [s.seed for s in plan.segments if store.folder(s).state == "failed"] == failed


def test_a_diverged_run_is_told_once_when_its_fleet_is_halved(
    toy_run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learn = Group.learn

    def fail(group: Group, **how: Any) -> None:
        if group.step > 40 and any(segment.seed == 3 for segment in group.segments):
            raise WorkerError("it broke")
        learn(group, **how)
        for run, segment in enumerate(group.segments):
            if segment.seed == 1:
                group.trainer.params["actor.0.weight"].data[run] = torch.inf

    monkeypatch.setattr(Group, "learn", fail)
    _, plan, outcome = toy_run(tmp_path, seeds=(0, 1, 2, 3), tasks=TASKS[:1])
    seeds = {segment.folder: segment.seed for segment in plan.segments}
    assert [seeds[folder] for folder in outcome.diverged] == [1]
    assert [seeds[folder] for folder in outcome.failed] == [3] and outcome.trained == 2


def test_segments_at_another_step_come_before_their_children(
    toy_run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planned as one fleet, since their snapshots are newer than the plan; children are alone."""
    for seed, chunks in ((0, 3), (1, 5)):
        toy_run(tmp_path, seeds=(seed,), tasks=TASKS, stop_after=chunks)
    made = Session.plan

    def plan(self: Session, *wanted: Any) -> Plan:
        monkeypatch.setattr(planning, "saved_step", lambda folder: 0)
        found = made(self, *wanted)
        first, *later = found.fleets
        return replace(found, fleets=(first, *((one,) for fleet in later for one in fleet)))

    monkeypatch.setattr(Session, "plan", plan)
    _, planned, outcome = toy_run(tmp_path, seeds=(0, 1), tasks=TASKS, side_by_side=2)
    assert [len(fleet) for fleet in planned.fleets] == [2, 1, 1]
    assert outcome.trained == 4 and not outcome.skipped


def test_retraining_is_told_while_it_lasts(
    toy_run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To whoever shows progress and in the status file; at once, and then every second update."""
    told: list[Any] = []

    def advance(self: Any, group: Any) -> None:
        if group.retraining:
            status = group.folders[0].status()
            told.append((*group.retraining, status["retraining"], status["resources"]["updates"]))

    ticks = itertools.count(0.0, 1.0)
    clock = SimpleNamespace(monotonic=lambda: next(ticks), time=time.time)
    monkeypatch.setattr("cwbench.fleet.group.time", clock)
    monkeypatch.setattr("cwbench.fleet.group.REPORT_SECONDS", 1.5)
    monkeypatch.setattr(toy.StopAfter, "advance", advance)
    options = {"retrain_updates": 6}
    store, plan, _ = toy_run(tmp_path, "packnet", tasks=TASKS[:2], options=options)
    used = store.folder(plan.segments[0]).status()["resources"]
    assert used["retrain_updates"] == 6
    assert told == [(made, 6, [made, 6], used["updates"]) for made in (0, 2, 4)]


@pytest.mark.parametrize(("tick", "lags"), [(100.0, {False}), (0.0, {False, True})])
def test_progress_is_recorded_between_evaluations(
    tick: float, lags: set[bool], toy_run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After each chunk if it takes 100 s; only by evaluations while the clock stands still."""
    found: set[bool] = set()

    def advance(self: Any, group: Any) -> None:
        found.add(group.folders[0].status()["step"] < group.step)

    ticks = itertools.count(0.0, tick)
    clock = SimpleNamespace(monotonic=lambda: next(ticks), time=time.time)
    monkeypatch.setattr("cwbench.fleet.group.time", clock)
    monkeypatch.setattr(toy.StopAfter, "advance", advance)
    toy_run(tmp_path, "finetuning", tasks=TASKS[:1])
    assert found == lags


def test_streams_are_reused() -> None:
    assert lowest_free([0, 2, 3], 3) == [1, 4, 5]
    assert lowest_free([], 2) == [0, 1]
