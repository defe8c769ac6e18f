"""Where a number comes from: fingerprints and the commit of the code."""

import hashlib
import json
import subprocess
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from cwbench.spec.version import __version__, built_commit


def fingerprint(content: Any) -> str:
    """A short name for anything JSON can hold: equal content, equal names."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


@cache
def report_commit() -> str:
    """The commit of this code, `+` if a checkout was changed since; else the version."""
    here = Path(__file__).resolve().parent
    try:
        commit = _git(here, "rev-parse", "--short", "HEAD")
        tracked = _git(here, "ls-files", "--", Path(__file__).name)
        changed = _git(here, "status", "--porcelain", "--untracked-files=no")
    except (OSError, subprocess.SubprocessError):
        tracked = ""
    return (commit + "+" * bool(changed)) if tracked else built_commit() or __version__


def _git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(folder), *arguments],
        capture_output=True,
        text=True,
        check=True,
        timeout=5,
    )
    return done.stdout.strip()


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
