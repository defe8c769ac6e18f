"""What is said of how training ended."""

from dataclasses import replace
from pathlib import Path

from cwbench.experiment.listener import Silent
from cwbench.experiment.summary import describe, disk_shortage, tell_outcome, tell_states
from cwbench.fleet.claiming import Outcome
from cwbench.planning.estimate import Estimate
from cwbench.planning.plan import Plan
from cwbench.spec.config import (
    MetaWorldConfig,
    MethodConfig,
    NetworkConfig,
    SACConfig,
    ScheduleConfig,
)
from cwbench.spec.segment import Segment, Setup
from cwbench.store.results import Store


class Lines(Silent):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, text: str) -> None:
        self.lines.append(text)

    def warn(self, text: str) -> None:
        self.lines.append(f"! {text}")


SETUP = Setup(
    "finetuning", MethodConfig(), SACConfig(), NetworkConfig(), MetaWorldConfig(), ScheduleConfig()
)


def test_numbers_of_a_large_plan_have_separators() -> None:
    fleet = tuple(Segment(SETUP, seed, ("push",)) for seed in range(1100))
    needs = Estimate(1, 1, 1, 1, 0, 1, None)
    [first, *_] = describe(Plan((), fleet, frozenset(), (fleet,)), needs, {}, "cpu", "2 workers")
    assert "1,100 segments, 0 done, 1,100 to train in 1 fleet" in first


def test_tasks_shorter_than_episodes_or_exploration_are_pointed_out() -> None:
    def lines(steps: int) -> list[str]:
        setup = replace(SETUP, schedule=ScheduleConfig(steps_per_task=steps))  # episodes of 200
        fleet = (Segment(setup, 0, ("push",)),)
        needs = Estimate(1, 1, 1, 1, 0, 1, None)
        return describe(Plan((), fleet, frozenset(), (fleet,)), needs, {}, "cpu", "2 workers")

    assert "no episode of 200 steps ends in a task of 150: give more" in "".join(lines(150))
    assert "no episode" not in "".join(lines(200))
    random = "tasks of 10,000 steps are explored at random to their end: give fewer --start-steps"
    assert random in "".join(lines(10_000))
    assert "at random" not in "".join(lines(10_001))


def test_what_other_processes_left_is_counted_and_named(tmp_path: Path) -> None:
    fleet = tuple(Segment(SETUP, seed, ("push",)) for seed in range(3))
    plan, store, listener = Plan((), fleet, frozenset(), (fleet,)), Store(tmp_path), Lines()
    for segment, state in zip(fleet, ("done", "failed", "running"), strict=True):
        store.folder(segment).create(segment, {})
        store.folder(segment).set_status(state, message="no memory")
    assert not tell_states(plan, store, listener, 200.4)
    assert listener.lines == [
        f"! failed: {fleet[1].folder}: no memory",
        "! 2 segments are not done; the same command continues",
        f"1 segment trained in 3 min 20 s; results are in {tmp_path}",
    ]


def test_an_interrupted_outcome_says_how_to_continue(tmp_path: Path) -> None:
    listener = Lines()
    outcome = Outcome(trained=0, interrupted=True)
    tell_outcome(outcome, listener, Store(tmp_path), "cwbench run", 7.0)
    assert listener.lines[0] == "! stopped; to continue: cwbench run"


def test_what_was_not_saved_is_said(tmp_path: Path) -> None:
    listener, unsaved = Lines(), {"a": (251, 0), "b": (2500, 1500), "c": (2500, 1500)}
    tell_outcome(Outcome(unsaved=unsaved), listener, Store(tmp_path), "cwbench run", 7.0)
    assert listener.lines[:2] == [
        "! 1 segment was stopped without saving: steps 0 to 251 are trained again",
        "! 2 segments were stopped without saving: steps 1,500 to 2,500 are trained again",
    ]


def test_a_diverged_segment_says_when_and_what_to_try(tmp_path: Path) -> None:
    store, segment, listener = Store(tmp_path), Segment(SETUP, 0, ("push",)), Lines()
    store.folder(segment).create(segment, {})
    store.folder(segment).set_status("diverged", message="weights are not finite at step 30")
    tell_outcome(Outcome(trained=0, diverged=[segment.folder]), listener, store, "cwbench run", 7.0)
    assert listener.lines[0].endswith("at step 30; try other options, such as a smaller --lr")


def test_a_plan_that_does_not_fit_on_the_disk_says_so(tmp_path: Path) -> None:
    results = tmp_path / "not yet" / "there"
    assert disk_shortage(results, 0) == []
    [line] = disk_shortage(results, 10**18)
    assert line.startswith("not enough disk space: ") and line.endswith(f"free for {results}")
