"""Where a number comes from: versions of the packages that produced it."""

from collections.abc import Iterable, Mapping
from typing import Any


def versions_of(records: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Versions that produced the segments: one value each, or all that occur."""
    found: dict[str, set[str]] = {}
    for name, version in set().union(*((r.get("versions") or {}).items() for r in records)):
        found.setdefault(name, set()).add(str(version))
    return {name: ", ".join(sorted(values)) for name, values in sorted(found.items())}
