"""Fleets that other processes train, as their status files show them."""

import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from cwbench.fleet.progress import Look, PlanState, Row, task_name
from cwbench.planning.forecast import Forecast
from cwbench.spec.segment import Segment
from cwbench.store.results import Store
from cwbench.store.status import steps_per_second

LOOK_SECONDS = 2.0  # between looks at the files
Status = dict[str, Any]


def look_at(store: Store, forecast: Forecast, earlier: Mapping[str, Any]) -> PlanState:
    """What other processes have made of a plan so far.

    `earlier`: failures of earlier commands, see `failures`; such segments are trained again.
    """
    segments = {segment.id: segment for fleet in forecast.fleets for segment in fleet}
    found = {key: store.folder(segment).status() for key, segment in segments.items()}
    steps = {key: segments[key].steps - status.get("step", 0) for key, status in found.items()}
    left = {
        key: steps_left
        for key, steps_left in forecast.steps_left(steps).items()
        if found[key]["state"] != "done"
    }
    made = forecast.steps - sum(left.values())
    failed = {key for key, when in _failures(found).items() if when != earlier.get(key)}
    for key in _with_children(forecast.fleets, failed):
        left.pop(key, None)
    retraining = {key: status["retraining"] for key, status in found.items() if _retrains(status)}
    under_way = [status for status in found.values() if status["state"] == "running"]
    fleets = (_row(fleet, [found[segment.id] for segment in fleet]) for fleet in forecast.fleets)
    rows = [row for row in fleets if row is not None]
    return PlanState(
        rows,
        left,
        {key: made / asked for key, (made, asked) in retraining.items()},
        settled=bool(under_way) and all(map(_settled, under_way)),
        made=made,
        speed=sum(row.speed or 0 for row in rows),
    )


def failures(store: Store, forecast: Forecast) -> dict[str, Any]:
    """Segments that have failed, and when."""
    segments = (segment for fleet in forecast.fleets for segment in fleet)
    return _failures({segment.id: store.folder(segment).status() for segment in segments})


def _failures(found: Mapping[str, Status]) -> dict[str, Any]:
    """A run that diverges stays in its fleet until the task's end."""
    return {
        key: status.get("updated")
        for key, status in found.items()
        if status["state"] == "failed"
        or (status["state"] == "diverged" and status.get("step") == status.get("steps"))
    }


def _with_children(fleets: Sequence[Sequence[Segment]], failed: Collection[str]) -> set[str]:
    """Failed segments, and those that would have followed."""
    lost = set(failed)
    for segment in (one for fleet in fleets for one in fleet):  # parents first
        if any(parent.id in lost for parent in segment.parents):
            lost.add(segment.id)
    return lost


def _row(fleet: Sequence[Segment], found: Sequence[Status]) -> Row | None:
    """None for a fleet that has not begun or is over."""
    first, states = fleet[0], {status["state"] for status in found}
    steps = [status.get("step", 0) for status in found]
    if "running" not in states and not ("pending" in states and any(steps)):
        return None
    return Row(
        first.setup.method,
        task_name(first.position, sorted({segment.tasks[-1] for segment in fleet})),
        len(fleet),
        sum(steps) // len(steps),
        first.steps,
        [s["success"] for s in found if s.get("success") is not None],
        sum(filter(None, map(steps_per_second, found))) or None,
        next((tuple(status["retraining"]) for status in found if _retrains(status)), None),
    )


def _retrains(status: Status) -> bool:
    return bool(status["state"] == "running" and status.get("retraining"))


def _settled(status: Status) -> bool:
    """Past its process's first updates, which compile."""
    return bool(status.get("step", 0) > status.get("started_step", 0))


def now_and_then(look: Look) -> Look:
    """The same, with answers cached for `LOOK_SECONDS`."""
    last, seen = -LOOK_SECONDS, PlanState()

    def cached() -> PlanState:
        nonlocal last, seen
        if time.monotonic() - last >= LOOK_SECONDS:
            last, seen = time.monotonic(), look()
        return seen

    return cached
