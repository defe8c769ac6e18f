"""Where a number comes from: versions of the packages that produced it."""

from collections.abc import Iterable, Mapping
from typing import Any


def versions_of(records: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Versions that produced the segments: one value each, or all that occur."""
    found: dict[str, set[str]] = {}
    sessions = [session for record in records for session in (record, *_resumed_with(record))]
    for name, version in set().union(*((r.get("versions") or {}).items() for r in sessions)):
        found.setdefault(name, set()).add(str(version))
    return {name: ", ".join(sorted(values)) for name, values in sorted(found.items())}


def _resumed_with(record: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Other code and machines that have continued a segment."""
    status = record.get("status")
    found = status.get("resumed_with", []) if isinstance(status, Mapping) else []
    return [session for session in found if isinstance(session, Mapping)]
