"""What the terminal shows of fleets that other processes train."""

from pathlib import Path
from typing import Any

import pytest

from cwbench.fleet.progress import PlanState, Row
from cwbench.fleet.watch import failures, look_at, now_and_then
from cwbench.planning.fleet_time import Parallelism
from cwbench.planning.forecast import Forecast, steps_alone


def test_what_others_train_is_read_from_status_files(toy_run: Any, tmp_path: Path) -> None:
    tasks = ("reach-0-1", "reach-2-1")
    store, plan, _ = toy_run(tmp_path, seeds=(0, 1), tasks=tasks, stop_after=14)
    assert [fleet[0].position for fleet in plan.fleets] == [0, 1]
    second = plan.fleets[1]
    needs = [steps_alone(fleet, 60) for fleet in plan.fleets]
    forecast = Forecast(plan.fleets, needs, Parallelism(), measured=False)
    [paused] = look_at(store, forecast, {}).rows  # the first task is over
    assert 0 < paused.step < 60 and paused.speed is None  # nobody trains it now
    for number, segment in enumerate(second):
        now = {"step": 30, "started": 100.0, "started_step": 10, "success": number / 2}
        store.folder(segment).set_status("running", updated=104.0, **now)
    row = Row("finetuning", "2 reach-2-1", 2, 30, 60, [0.0, 0.5], 2 * (30 - 10) / 4)
    left = {segment.id: 30 for segment in second}
    state = PlanState([row], left, settled=True, made=180, speed=10.0)
    assert look_at(store, forecast, {}) == state
    store.folder(second[0]).set_status("running", step=30, started_step=30)
    assert not look_at(store, forecast, {}).settled
    for segment in second:
        store.folder(segment).set_status("running", step=60, retraining=[25, 100])
    ends = look_at(store, forecast, {})
    assert ends.rows[0].retraining == (25, 100) and ends.rows[0].speed is None
    assert ends.left == dict.fromkeys(left, 0) and ends.ended == dict.fromkeys(left, 0.25)


def test_what_follows_a_failed_segment_is_not_left_to_train(toy_run: Any, tmp_path: Path) -> None:
    """Unless an earlier command failed: then it is trained again. What was made stays made."""
    tasks = ("reach-0-1", "reach-2-1")
    store, plan, _ = toy_run(tmp_path, seeds=(0, 1), tasks=tasks, stop_after=1)
    needs = [steps_alone(fleet, 60) for fleet in plan.fleets]
    forecast = Forecast(plan.fleets, needs, Parallelism(), measured=False)
    first, second = plan.fleets[0]
    for segment in (first, second):
        store.folder(segment).set_status("failed", step=20)
    earlier = failures(store, forecast)
    assert set(earlier) == {first.id, second.id}
    assert look_at(store, forecast, earlier).left.keys() == {s.id for s in plan.segments}
    store.folder(first).set_status("failed", step=20)
    store.folder(second).set_status("diverged", step=30)  # its fleet goes on
    state = look_at(store, forecast, earlier)
    assert [segment.seed for segment in plan.segments if segment.id in state.left] == [1, 1]
    assert state.made == 50 and state.total == 50 + 30 + 60
    store.folder(second).set_status("diverged", step=60)
    assert not look_at(store, forecast, earlier).left


def test_files_are_read_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[int] = []

    def look() -> PlanState:
        looks.append(1)
        return PlanState()

    cached = now_and_then(look)
    assert cached() == cached() == PlanState()
    assert len(looks) == 1
    monkeypatch.setattr("cwbench.fleet.watch.LOOK_SECONDS", -1.0)
    cached()
    assert len(looks) == 2
