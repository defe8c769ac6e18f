"""Faults to inject, and a count of what became of them."""

import errno
import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from cwbench.store import files

TALLY: dict[str, Counter[str]] = {}  # kind of fault -> injected, survived, silent


def count(kind: str, *, survived: bool = True, silent: bool = False) -> None:
    """Survived: right results, or an error that names the file. Silent: wrong numbers, no word."""
    found = TALLY.setdefault(kind, Counter())
    found["injected"] += 1
    found["survived"] += survived and not silent
    found["silent"] += silent


class Killed(BaseException):
    """The process ends here: nobody catches it."""


class Disk:
    """Watches the store's calls to the file system; acts before one of them.

    It remembers what was synced, so that a power cut can take the rest away.
    """

    def __init__(self, act: Callable[[], None], at: int | None = None) -> None:
        self.act, self.at, self.calls = act, at, 0
        self.synced: dict[int, bytes] = {}

    @contextmanager
    def watching(self) -> Iterator["Disk"]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(files, "sync", self._sync)
            for owner, name in ((Path, "replace"), (Path, "write_text"), (os, "truncate")):
                patch.setattr(owner, name, self._counted(getattr(owner, name)))
            yield self

    def _counted(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **kwargs: Any) -> Any:
            self._count()
            return call(*args, **kwargs)

        return counted

    def _count(self) -> None:
        self.calls += 1
        if self.calls - 1 == self.at:
            self.act()

    def _sync(self, path: Path) -> None:
        self._count()
        if path.is_file():
            self.synced[path.stat().st_ino] = path.read_bytes()

    def cut_power(self, root: Path) -> None:
        """Every file falls back to what was last synced of it, renamed or not."""
        for file in (file for file in root.rglob("*") if file.is_file()):
            kept = self.synced.get(file.stat().st_ino, b"")
            if file.read_bytes() != kept:
                file.write_bytes(kept)


def kill() -> None:
    raise Killed


def fail(number: int) -> Callable[[], None]:
    def act() -> None:
        raise OSError(number, os.strerror(number))

    return act


ERRORS = {"EIO": fail(errno.EIO), "ENOSPC": fail(errno.ENOSPC)}


# Damage to a file on disk: kind -> what is done to it.


def flip(file: Path, bit: int) -> None:
    content = bytearray(file.read_bytes())
    content[bit // 8 % len(content)] ^= 1 << bit % 8
    file.write_bytes(content)


def replaced(make: Callable[[Path], Any]) -> Callable[[Path], None]:
    def act(file: Path) -> None:
        file.unlink()
        make(file)

    return act


DAMAGE: dict[str, Callable[[Path], Any]] = {
    "empty": lambda file: file.write_bytes(b""),
    "half": lambda file: file.write_bytes(file.read_bytes()[: file.stat().st_size // 2]),
    "one byte less": lambda file: file.write_bytes(file.read_bytes()[:-1]),
    "NULs": lambda file: file.write_bytes(b"\0" * file.stat().st_size),
    "binary": lambda file: file.write_bytes(b"\xff\xfe" * 50),
    "a list": lambda file: file.write_text("[1, 2]"),
    "deep": lambda file: file.write_text("[" * 50_000),
    "missing": lambda file: file.unlink(),
    "folder": replaced(lambda file: file.mkdir()),
    "pipe": replaced(os.mkfifo),
    "link to nothing": replaced(lambda file: file.symlink_to("/nowhere/at/all")),
    "link to a device": replaced(lambda file: file.symlink_to("/dev/zero")),
}
