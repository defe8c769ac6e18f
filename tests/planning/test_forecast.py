"""Time left of plans whose course is made up, so that the answer is known."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from cwbench.planning.fleet_time import FleetNeeds, Parallelism
from cwbench.planning.forecast import Forecast, steps_alone

ONE = Parallelism()  # fleet at a time


def fleet(name: str, runs: int, steps: int = 100_000, parents: Any = ()) -> list[Any]:
    position = len(parents)  # of a run's tasks
    return [
        SimpleNamespace(id=f"{name}{run}", steps=steps, parents=parents, position=position)
        for run in range(runs)
    ]


def needs(runs: int, updates: float, end: float = 0.0, steps: int = 100_000) -> FleetNeeds:
    """Of fleets that do not slow each other down."""
    return FleetNeeds(runs * steps, 0, 0, 0, 0, updates, 0.0, 0.0, end, occupancy=0.0)


def test_fleets_of_different_speed_are_forecast_by_what_the_plan_knows() -> None:
    """40 quick runs in 200 s, five slow ones in 500 s, 45 that start from them in 600 s.

    Planned: 1,100 s. All takes 1.2 times as long, and half a minute of compilation. Steps per
    second fall to a fifth when the quick ones are done and rise again with the last fleet.
    """
    quick, slow = fleet("quick", 40), fleet("slow", 5)
    both = fleet("both", 45, parents=(slow[0], quick[0]))
    plan = Forecast(
        [quick, slow, both], [needs(40, 200), needs(5, 500), needs(45, 600)], Parallelism(3)
    )
    planned = 1100.0

    def left(now: float) -> dict[str, int]:
        steps: dict[str, int] = {}
        for group, start, end in ((quick, 0, 240), (slow, 0, 600), (both, 600, 1320)):
            done = min(1.0, max(0.0, (now - start) / (end - start)))
            steps |= dict.fromkeys((s.id for s in group), round(100_000 * (1 - done)))
        return {key: number for key, number in steps.items() if number}

    assert plan.seconds(20, left(0)) == planned  # while it compiles
    plan.start(30, left(0))
    for now in (0, 10, 60, 230, 250, 590, 610, 1000, 1300):
        seconds = plan.seconds(30 + now, left(now))
        true = 1320 - now
        assert seconds is not None
        assert true / 1.2 <= seconds + 1e-6  # the plan's word at worst, the truth in the end
        assert seconds <= true + 1e-6
        assert now < 300 or seconds == pytest.approx(true, rel=0.05)


@pytest.mark.parametrize(
    ("planned", "took", "missed"),
    [(80, 22, True), (80, 60, False), (80, 130, True), (8, 80, False)],
)
def test_a_plan_that_took_another_time_was_missed(planned: int, took: int, missed: bool) -> None:
    plan = Forecast([fleet("a", 2)], [needs(2, planned)], ONE)
    assert not plan.missed(1000)  # nothing is known yet
    plan.start(5, plan.left)
    assert plan.missed(5 + took) == missed


def test_a_wrong_plan_is_corrected_within_minutes() -> None:
    """Said 40 minutes, takes ten."""
    runs = fleet("a", 2)
    plan = Forecast([runs], [needs(2, 2400)], ONE)
    plan.start(0, plan.left)

    def seconds(now: float) -> float:
        found = plan.seconds(now, dict.fromkeys(plan.left, round(100_000 * (1 - now / 600))))
        assert found is not None
        return found

    assert seconds(0) == 2400
    assert seconds(60) == 2160 * 120 / 300
    assert seconds(300) == 1200 * 360 / 1260  # 343 s instead of 300


def test_the_end_of_a_task_is_left_until_it_is_over() -> None:
    """Retraining takes as long as the steps before it, and makes none."""
    first, second = fleet("a", 1), fleet("b", 1)
    plan = Forecast([first, second], [needs(1, 100, end=100)] * 2, ONE)
    assert plan.planned({"a0": 100_000, "b0": 100_000}) == 400
    assert plan.planned({"a0": 0, "b0": 100_000}) == 300
    assert plan.planned({"b0": 100_000}) == 200
    assert plan.planned({}) == 0


def test_what_snapshots_brought_is_not_left() -> None:
    fleets = [fleet("a", 2), fleet("b", 1)]
    plan = Forecast(fleets, [needs(2, 100), needs(1, 50)], ONE, {"a0": 50_000})
    assert plan.planned(plan.left) == 125  # a fleet at different steps counts by the mean


def test_without_a_plan_all_steps_count_alike() -> None:
    def course() -> Iterator[float | None]:
        fleets = [fleet("a", 2, 1000), fleet("b", 1, 2000)]
        needs = [steps_alone(one, one[0].steps) for one in fleets]
        plan = Forecast(fleets, needs, Parallelism(8), measured=False)
        yield plan.seconds(0, plan.left)
        plan.start(0, plan.left)
        yield plan.seconds(5, {"a0": 900, "a1": 900, "b0": 2000})
        yield plan.seconds(100, {"a0": 500, "a1": 500, "b0": 2000})

    assert list(course()) == [None, None, 300]  # 1,000 of 4,000 steps in 100 s


def test_steps_of_an_expert_are_not_left() -> None:
    """A method that makes the last tenth of a task's steps itself."""
    plan = Forecast([fleet("a", 1)], [needs(1, 50, end=10, steps=10_000)], ONE)
    assert plan.planned(plan.left) == 60
    assert plan.planned({"a0": 10_000}) == 60  # where it begins
    assert plan.planned({"a0": 5_000}) == 35
