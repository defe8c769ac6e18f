"""Whole runs on the toy: what is counted, what is shared, what is left on disk."""

import contextlib
import errno
import gc
import json
import os
import shutil
import weakref
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch

from cwbench.cli import main
from cwbench.envs.metaworld import step_cost
from cwbench.fleet.group import Group
from cwbench.fleet.progress import Display
from cwbench.fleet.records import Records
from cwbench.fleet.weight_sync import WeightPublisher
from cwbench.learner.trainer import Trainer
from cwbench.methods.finetuning import FineTuning
from cwbench.rollout.collector import Collector
from cwbench.rollout.episodes import LaneSpec
from cwbench.rollout.pool import Pool
from cwbench.spec.actor_layout import ActorLayout
from cwbench.spec.config import MetaWorldConfig, PointMassConfig
from cwbench.spec.schedule import count_updates
from cwbench.spec.segment import Segment
from cwbench.spec.tasks import CW_TASKS
from cwbench.store.files import write_json
from cwbench.store.runs import load_runs


def test_counts_of_steps_updates_and_evaluations(toy_run: Any, tmp_path: Path) -> None:
    store, plan, outcome = toy_run(tmp_path, seeds=(0, 1))
    assert outcome.trained == 6
    schedule = plan.segments[0].setup.schedule
    for segment in plan.segments:
        folder = store.folder(segment)
        used = folder.status()["resources"]
        tasks = segment.position + 1
        assert used["train_steps"] == 60
        assert used["updates"] == count_updates(schedule, 60) == 40
        assert used["eval_steps"] == 3 * tasks * 2 * 20  # evaluations, tasks, episodes, horizon
        assert used["selection_steps"] == used["extra_steps"] == used["retrain_updates"] == 0
        assert used["unstable_episodes"] == 0
        assert 0 < folder.status()["warm_up_seconds"] < folder.status()["seconds"]
        evals = pd.read_csv(folder.path / "evals.csv")
        assert evals["step"].tolist() == [s for s in (25, 50, 60) for _ in range(tasks)]
        assert evals["eval_position"].tolist() == list(range(tasks)) * 3
        assert (evals["episodes"] == 2).all()
        train = pd.read_csv(folder.path / "train.csv")
        assert train["episodes"].sum() == 60 // 20
        assert train["updates"].tolist() == [10, 30, 40]
        assert not folder.snapshot.parent.exists() and not folder.replay.exists()


def test_a_second_command_trains_nothing_and_other_sequences_share(
    toy_run: Any, tmp_path: Path
) -> None:
    store, plan, _ = toy_run(tmp_path, tasks=("reach-0-1", "reach-2-1"))
    before = {s.id: (store.folder(s).path / "status.json").read_text() for s in plan.segments}
    _, again, outcome = toy_run(tmp_path, tasks=("reach-0-1", "reach-2-1"))
    assert again.missing == 0 and outcome.trained == 0
    _, other, outcome = toy_run(tmp_path, tasks=("reach-0-1", "reach-4-1"))
    assert other.missing == outcome.trained == 1
    after = {s.id: (store.folder(s).path / "status.json").read_text() for s in plan.segments}
    assert before == after


def test_runs_are_assembled_from_segments(toy_run: Any, tmp_path: Path) -> None:
    toy_run(tmp_path, seeds=(0, 1))
    found = load_runs(tmp_path)
    assert not found.problems
    assert found.runs["seed"].tolist() == [0, 1]
    assert (found.runs["state"] == "done").all() and (found.runs["step"] == 180).all()
    one = found.evals[found.evals["run"] == found.runs["run"][0]]
    assert one.groupby("position")["step"].max().tolist() == [60, 120, 180]
    assert one[one["position"] == 2].groupby("eval_position").size().tolist() == [3, 3, 3]


def test_an_interrupted_run_is_normal_input(toy_run: Any, tmp_path: Path) -> None:
    _, _, outcome = toy_run(tmp_path, seeds=(0, 1), stop_after=12)
    assert outcome.interrupted
    found = load_runs(tmp_path)
    assert not found.problems
    assert set(found.runs["state"]) == {"stopped"} and (found.runs["done"] == 1).all()
    assert found.runs["step"].between(61, 119).all()


def test_bad_lines_are_named_not_guessed(toy_run: Any, tmp_path: Path) -> None:
    store, plan, _ = toy_run(tmp_path, tasks=("reach-0-1",))
    file = store.folder(plan.segments[0]).path / "evals.csv"
    write_json(file.with_name("status.json"), {"state": "done", "step": 60})  # no checksums: v0.2
    lines = file.read_text().splitlines()
    file.write_text("\n".join([*lines, lines[1], "90,0,reach-0-1,x,1,0.5", "95,0,rea"]))
    found = load_runs(tmp_path)
    assert len(found.problems) == 3
    assert "repeated" in " ".join(found.problems)
    assert any("line 7" in p and "truncated" in p for p in found.problems)
    assert len(found.evals) == 3


def test_failed_segments_are_reported_and_their_children_wait(
    toy_run: Any, tmp_path: Path, capsys: Any
) -> None:
    store, plan, outcome = toy_run(tmp_path, tasks=("reach-0-1", "reach-2-x"))
    assert outcome.trained == 1 and len(outcome.failed) == 1
    status = json.loads((store.folder(plan.segments[1]).path / "status.json").read_text())
    assert status["state"] == "failed" and "could not convert" in status["message"]


@pytest.mark.parametrize("hook", ["after_update", "begin_task"])  # with a group, or without one
def test_what_follows_a_failed_segment_leaves_the_time_left_at_once(
    hook: str, toy_run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """Before the next fleet begins, not when its own turn comes."""
    told: list[str] = []

    def fail(*_: object) -> None:
        raise ZeroDivisionError

    def begin(display: Display, groups: Sequence[Group]) -> None:
        told.extend(f"begin {group.setup.method} {group.position + 1}" for group in groups)

    def leave(display: Display, segment: Segment) -> None:
        told.append(f"leave {segment.setup.method} {segment.position + 1}")

    monkeypatch.setattr(FineTuning, hook, fail)
    monkeypatch.setattr(Display, "begin", begin)
    monkeypatch.setattr(Display, "leave", leave)
    outcome = toy_run(tmp_path, "finetuning", "l2", tasks=("reach-0-1", "reach-2-1"))[2]
    assert len(outcome.failed) == outcome.skipped == 1 and outcome.trained == 2
    expected = ["leave finetuning 1", "leave finetuning 2", "begin l2 1"]
    assert told[told.index("leave finetuning 1") :][:3] == expected


def test_a_missing_replay_fails_only_the_run_that_needs_it(
    toy_run: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a folder of version 0.2: without checksums a plan cannot tell that there was one."""
    store, plan, _ = toy_run(tmp_path, "pm", seeds=(0, 1, 2), tasks=("reach-0-1",))
    folder = store.folder(plan.segments[1])
    shutil.rmtree(folder.replay)
    write_json(folder.path / "status.json", {"state": "done", "step": 60})
    tasks = ("reach-0-1", "reach-2-1")
    store, plan, outcome = toy_run(tmp_path, "pm", seeds=(0, 1, 2), tasks=tasks)
    states = {s.seed: store.folder(s).state for s in plan.segments if s.position}
    assert states == {0: "done", 1: "failed", 2: "done"} and outcome.trained == 2
    [message] = outcome.failed.values()
    assert "replay is missing, perhaps removed by `cwbench clean`" in message
    assert not capsys.readouterr().err  # no traceback: the message says what to do
    main(["status", str(tmp_path)])
    assert ".py line" not in capsys.readouterr().out


def test_a_failed_segment_says_what_it_took_until_then(
    toy_run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """Also what came after the last record: the evaluation after step 21's ten updates."""

    def after_update(self: FineTuning, *_: object) -> None:
        if self.trainer.updates == 15:
            raise ZeroDivisionError

    monkeypatch.setattr(FineTuning, "after_update", after_update)
    store, plan, _ = toy_run(tmp_path, tasks=("reach-0-1",))
    status = store.folder(plan.segments[0]).status()
    assert status["state"] == "failed" and status["step"] == 31
    counts = status["resources"]
    assert (counts["train_steps"], counts["updates"]) == (31, 15)


def test_a_failed_fleet_leaves_nothing_behind(
    toy_run: Any, toy_pool: Pool, tmp_path: Path, capsys: Any
) -> None:
    """Both workers fail, and two parts are open; then others train."""
    bad = {"tasks": ("reach-2-x",), "seeds": (0, 1, 2, 3), "groups": 2}
    _, _, outcome = toy_run(tmp_path / "bad", **bad)
    assert len(outcome.failed) == 4
    assert toy_pool.load == [0.0] * len(toy_pool.workers)
    assert not any(worker.connection.poll() for worker in toy_pool.workers)
    found = []
    for name in ("after", "again"):
        _, _, outcome = toy_run(tmp_path / name, seeds=(0, 1), tasks=("reach-0-1",))
        assert outcome.good
        found.append(load_runs(tmp_path / name).evals)
    assert found[0].equals(found[1])


def shared_arrays() -> int:
    """How many this process has open, without those that nobody refers to."""
    gc.collect()
    found = 0
    for file in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):  # the folder itself, while it was listed
            found += os.readlink(f"/proc/self/fd/{file}").startswith("/memfd:cwbench")
    return found


@pytest.mark.parametrize("fails", [(Records, "begin_session"), (WeightPublisher, "__init__")])
def test_a_fleet_that_cannot_begin_occupies_no_worker(
    fails: tuple[type, str],
    toy_run: Any,
    toy_pool: Pool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Any,
) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "segment.json")

    def try_head(self: FineTuning, position: int) -> None:
        self.trainer.try_heads(position, [position], 1)

    monkeypatch.setattr(FineTuning, "on_task_start", try_head)  # with weights in shared memory
    monkeypatch.setattr(*fails, full)
    monkeypatch.setattr(Pool, "reset", lambda pool: None)
    before = shared_arrays()
    _, _, outcome = toy_run(tmp_path, tasks=("reach-0-1",))
    assert len(outcome.failed) == 1
    assert not toy_pool.collectors and toy_pool.load == [0.0] * len(toy_pool.workers)
    assert shared_arrays() == before


@pytest.mark.parametrize("name", ["recall", "pm"])
def test_a_finished_task_has_left_memory_when_the_next_begins(
    name: str, toy_run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Although progress keeps the groups, and Python does not look for circles by itself."""
    trainers: list[weakref.ref[Trainer]] = []
    alive, kept = [], list[Group]()

    class Watched(Trainer):
        def __init__(self, *args: Any, **options: Any) -> None:
            alive.append(sum(trainer() is not None for trainer in trainers))
            super().__init__(*args, **options)
            trainers.append(weakref.ref(self))

    monkeypatch.setattr("cwbench.fleet.group.Trainer", Watched)
    monkeypatch.setattr(Display, "begin", lambda self, groups: kept.extend(groups))
    gc.disable()
    try:
        toy_run(tmp_path, name, seeds=(0, 1), groups=2)
    finally:
        gc.enable()
    assert [group.position for group in kept] == [0, 0, 1, 1, 2, 2]
    assert alive == [0, 1, 0, 1, 0, 1]


def test_lanes_of_two_groups_are_balanced() -> None:
    """Three and three lanes on four workers: the second group begins where the first ended."""
    shapes = {"actor.0.weight": (12, 8), "actor.0.bias": (8,)}
    lanes = [LaneSpec(run, run, 0, 0, ((0, "reach-0-1"),), 0, ()) for run in range(3)]
    shape: dict[str, Any] = {"runs": 3, "longest": 5, "width": 29, "states": {}}
    with Pool(4) as pool:
        collectors = [
            Collector(pool, lanes, ActorLayout(shapes, 0, 0), PointMassConfig(), **shape)
            for _ in range(2)
        ]
        assert pool.load == [2, 2, 1, 1]
        for collector in collectors:
            collector.close()
        assert pool.load == [0, 0, 0, 0]


def test_slow_and_fast_tasks_are_balanced_over_workers() -> None:
    """Ten tasks on two workers by number could differ by a fifth; by cost they hardly do."""
    shapes = {"actor.0.weight": (12, 8), "actor.0.bias": (8,)}
    costs = {task: step_cost(task, MetaWorldConfig()) for task in CW_TASKS}
    order = sorted(costs, key=lambda task: costs[task])
    names = [*order[::2], *order[1::2]]
    lanes = [LaneSpec(run, run, 0, 0, ((0, name),), 0, ()) for run, name in enumerate(names)]
    shape: dict[str, Any] = {"runs": 10, "longest": 5, "width": 29, "states": {}}
    with Pool(2) as pool:
        collector = Collector(pool, lanes, ActorLayout(shapes, 0, 0), MetaWorldConfig(), **shape)
        total = sum(costs.values())
        assert pool.load == pytest.approx([total / 2] * 2, rel=0.02)
        collector.close()


def test_sessions_continue_the_list_of_an_older_folder(toy_run: Any, tmp_path: Path) -> None:
    store, plan, _ = toy_run(tmp_path, tasks=("reach-0-1",), stop_after=3)
    folder = store.folder(plan.segments[0])
    status = folder.status()
    step = status["step"]
    status["sittings"] = status.pop("sessions")  # the key in version 0.1
    write_json(folder.path / "status.json", status)
    toy_run(tmp_path, tasks=("reach-0-1",))
    assert folder.done and folder.status()["sessions"] == [0, step]
    assert folder.status()["resumed_with"] == []  # with the same code


def test_a_fleet_that_runs_out_of_memory_is_split(
    toy_run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learn = Group.learn

    def full(group: Group, **how: Any) -> None:
        if group.runs > 1:
            raise torch.OutOfMemoryError("CUDA out of memory")
        learn(group, **how)

    def end(display: Display, groups: Sequence[Group], again: Collection[str] = ()) -> None:
        again_of_fleets.append(sum(s.id in again for group in groups for s in group.segments))

    again_of_fleets: list[int] = []
    monkeypatch.setattr(Display, "end", end)
    monkeypatch.setattr(Group, "learn", full)
    with pytest.warns(UserWarning, match="out of memory: a fleet of 2 runs is split"):
        outcome = toy_run(tmp_path, seeds=(0, 1), tasks=("reach-0-1", "reach-2-1"))[2]
    assert outcome.good and outcome.trained == 4
    assert again_of_fleets == [2, 0, 0, 2, 0, 0]  # progress counts on the halves


@pytest.mark.parametrize("always", [False, True])
def test_a_run_that_found_no_memory_next_to_others_trains_alone(
    tmp_path: Path, toy_run: Any, monkeypatch: pytest.MonkeyPatch, always: bool
) -> None:
    """Or fails, if there is no memory even then."""
    learn, finished = Group.learn, set[str]()

    def full(group: Group, **how: Any) -> None:
        if group.setup.method == "l2" and (always or not finished):
            raise torch.OutOfMemoryError("CUDA out of memory")
        learn(group, **how)
        if group.finished:
            finished.add(group.setup.method)

    monkeypatch.setattr(Group, "learn", full)
    with pytest.warns(UserWarning, match="out of memory: a run waits until it can train alone"):
        outcome = toy_run(
            tmp_path, "finetuning", "l2", seeds=(0,), tasks=("reach-0-1",), side_by_side=2
        )[2]
    assert outcome.trained == (1 if always else 2)
    assert list(outcome.failed.values()) == ["CUDA out of memory"] * always


@pytest.mark.parametrize("where", ["train", "begin"])
def test_a_fleet_without_memory_leaves_all_it_had_before_its_halves_begin(
    where: str, toy_run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Although the error's traceback refers to the trainer, and Python looks for no circles."""
    trainers: list[weakref.ref[Trainer]] = []
    alive = []

    class Watched(Trainer):
        def __init__(self, *args: Any, **options: Any) -> None:
            alive.append(sum(trainer() is not None for trainer in trainers))
            super().__init__(*args, **options)
            trainers.append(weakref.ref(self))

    def full(trainer: Trainer, *args: Any, **options: Any) -> None:
        if trainer.runs > 1:
            raise torch.OutOfMemoryError("CUDA out of memory")
        work(trainer, *args, **options)

    work = getattr(Trainer, where)
    monkeypatch.setattr(Watched, where, full, raising=False)
    monkeypatch.setattr("cwbench.fleet.group.Trainer", Watched)
    gc.disable()
    try:
        with pytest.warns(UserWarning, match="out of memory: a fleet of 2 runs is split"):
            outcome = toy_run(tmp_path, seeds=(0, 1), tasks=("reach-0-1",))[2]
    finally:
        gc.enable()
    assert outcome.trained == 2 and alive == [0, 0, 0]
