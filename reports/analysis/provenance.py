"""Where a number comes from: versions of the packages that produced it, and what it took."""

from collections.abc import Iterable, Mapping
from typing import Any


def versions_of(records: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Versions that produced the segments: one value each, or all that occur."""
    found: dict[str, set[str]] = {}
    sessions = [session for record in records for session in (record, *_resumed_with(record))]
    for name, version in set().union(*((r.get("versions") or {}).items() for r in sessions)):
        found.setdefault(name, set()).add(str(version))
    return {name: ", ".join(sorted(values)) for name, values in sorted(found.items())}


def counters(status: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a segment has used; versions differ in what they count."""
    return status.get("resources") or {}


def steps_and_seconds(records: Iterable[Mapping[str, Any]]) -> tuple[int, float]:
    """Training steps and wall time of all these segments."""
    statuses = [record["status"] for record in records]
    steps = sum(int(counters(status).get("train_steps", 0)) for status in statuses)
    return steps, sum(float(status.get("seconds", 0)) for status in statuses)


def _resumed_with(record: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Other code and machines that have continued a segment."""
    status = record.get("status")
    found = status.get("resumed_with", []) if isinstance(status, Mapping) else []
    return [session for session in found if isinstance(session, Mapping)]
