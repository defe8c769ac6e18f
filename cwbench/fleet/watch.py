"""Fleets that other processes train, as their status files show them."""

import time
from collections.abc import Callable, Sequence
from typing import Any

from cwbench.fleet.progress import Row, task_name
from cwbench.spec.segment import Segment
from cwbench.store.results import Store

LOOK_SECONDS = 2.0  # between looks at the files


def rows_on_disk(store: Store, fleets: Sequence[Sequence[Segment]]) -> list[Row]:
    """A row for each fleet that has begun; finished ones included."""
    rows = [_row(fleet, [store.folder(segment).status() for segment in fleet]) for fleet in fleets]
    return [row for row in rows if row.step]


def _row(fleet: Sequence[Segment], found: Sequence[dict[str, Any]]) -> Row:
    first = fleet[0]
    steps = [status.get("step", 0) for status in found]
    return Row(
        first.setup.method,
        task_name(first.position, sorted({segment.tasks[-1] for segment in fleet})),
        len(fleet),
        sum(steps) // len(steps),
        first.steps,
        [s["success"] for s in found if s.get("success") is not None],
        sum(filter(None, map(_speed, found))) or None,
    )


def _speed(status: dict[str, Any]) -> float | None:
    """Steps per second of a run that is being trained, since its process began with it."""
    if status["state"] != "running" or "started" not in status:
        return None
    seconds = status["updated"] - status["started"]
    steps = status["step"] - status["started_step"]
    return float(steps / seconds) if steps and seconds > 0 else None


def now_and_then(look: Callable[[], list[Row]]) -> Callable[[], list[Row]]:
    """The same, with the last answer again if it is young."""
    last, rows = -LOOK_SECONDS, list[Row]()

    def cached() -> list[Row]:
        nonlocal last, rows
        if time.monotonic() - last >= LOOK_SECONDS:
            last, rows = time.monotonic(), look()
        return rows

    return cached
