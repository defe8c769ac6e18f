"""The commit of this package, by one rule for what trains and what reports."""

import hashlib
import os
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

HERE = Path(__file__).resolve()


def commit() -> str:
    """The commit this package is of; `source:` and a hash of its files where none is known.

    A wheel has it in `spec/COMMIT`. CWBENCH_COMMIT names it for a copy of a checkout, which has no
    history or another one.
    """
    named = os.environ.get("CWBENCH_COMMIT", "")
    if re.fullmatch("[0-9a-f]{40}", named):
        named = named[:12]  # as git names that of a checkout below
    return named or _checked_out() or _built() or f"source:{source_hash()}"


def commit_and_changes() -> str:
    """As `commit`, with `+` if it is that of a checkout whose files were changed since."""
    name = commit()
    changed = name == _checked_out() and _git("status", "--porcelain", "--untracked-files=no")
    return name + "+" * bool(changed)


@cache
def source_hash() -> str:
    """A hash of the package's own code: equal for equal code, wherever it is installed."""
    package = HERE.parents[1]
    files = {file.relative_to(package).as_posix(): file for file in _sources(package)}
    total = hashlib.sha256()
    for name in sorted(files):
        total.update(f"{name} {hashlib.sha256(files[name].read_bytes()).hexdigest()}\n".encode())
    return total.hexdigest()[:12]


def _sources(package: Path) -> Iterator[Path]:
    """Its Python files. In a checkout some folders are links: `rglob` follows only its start."""
    for entry in package.iterdir():
        if entry.is_dir():
            yield from entry.rglob("*.py")
        elif entry.suffix == ".py":
            yield entry


def _built() -> str:
    """The commit a wheel was built at, which is in its file `COMMIT`; empty elsewhere."""
    file = HERE.with_name("COMMIT")
    return file.read_text(encoding="utf-8").strip() if file.exists() else ""


def _checked_out() -> str:
    """The commit of the checkout that this file belongs to; empty where it belongs to none."""
    tracked = (HERE.parents[2] / ".git").exists() and _git("ls-files", "--", str(HERE))
    return _git("rev-parse", "--short=12", "HEAD") if tracked else ""


@cache
def _git(*arguments: str) -> str:
    """What git prints in this folder; empty where it fails or is not installed."""
    command = ["git", "-C", str(HERE.parent), *arguments]
    try:
        return subprocess.run(command, capture_output=True, text=True).stdout.strip()
    except OSError:
        return ""
