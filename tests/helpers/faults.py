"""Faults to inject, and a count of what became of them."""

import errno
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from cwbench.store import files
from cwbench.store.results import SegmentFolder

TALLY: dict[str, Counter[str]] = {}  # kind of fault -> injected, survived, silent
LENGTH = float(os.environ.get("CWBENCH_FAULTS", "1"))  # of `make faults`


def times(number: int) -> int:
    """How often to inject a fault, by the length asked for."""
    return max(1, round(number * LENGTH))


def count(kind: str, *, survived: bool = True, silent: bool = False) -> None:
    """Survived: right results, or an error that names the file. Silent: wrong numbers, no word."""
    found = TALLY.setdefault(kind, Counter())
    found["injected"] += 1
    found["survived"] += survived and not silent
    found["silent"] += silent


class Killed(BaseException):
    """The process ends here: nobody catches it, and nothing is written or removed after it."""


# Calls that change something on the disk.
CALLS: tuple[tuple[Any, str], ...] = (
    *((Path, name) for name in ("replace", "write_text", "unlink", "rename", "hardlink_to")),
    (os, "truncate"),
    (SegmentFolder, "append"),
)


class Disk:
    """Watches the store's calls to the file system; a fault happens before one of them.

    It remembers what was synced, so that a power cut can take the rest away.
    """

    def __init__(self, fault: str = "", at: int | None = None) -> None:
        self.fault, self.at, self.calls, self.dead = fault, at, 0, False
        self.content: dict[int, bytes] = {}  # of synced files, by inode
        # Of synced folders: inode and content by name. A free inode is soon another file's.
        self.names: dict[Path, dict[str, tuple[int, bytes]]] = {}

    @contextmanager
    def watching(self) -> Iterator["Disk"]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(files, "sync", self._watched(self._sync))
            for owner, name in CALLS:
                patch.setattr(owner, name, self._watched(getattr(owner, name)))
            yield self

    def _watched(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def watched(*args: Any, **kwargs: Any) -> Any:
            if self.dead:
                raise Killed
            self.calls += 1
            if self.calls - 1 == self.at:
                self._fail(call, args, kwargs)
            return call(*args, **kwargs)

        return watched

    def _fail(self, call: Callable[..., Any], args: Any, kwargs: Any) -> None:
        if self.fault in ERRORS:
            raise OSError(ERRORS[self.fault], os.strerror(ERRORS[self.fault]))
        self.dead = bool(self.fault)
        if self.fault == "kill in a write":
            _write_half(call, args, kwargs)
        if self.fault:
            raise Killed

    def _sync(self, path: Path) -> None:
        if path.is_file():
            self.content[path.stat().st_ino] = path.read_bytes()
        else:
            inodes = {one.name: one.stat().st_ino for one in path.iterdir() if one.is_file()}
            self.names[path] = {
                n: (inode, self.content.get(inode, b"")) for n, inode in inodes.items()
            }

    def cut_power(self, root: Path) -> None:
        """Every file falls back to what was last synced of it, renamed or not."""
        for file in (file for file in root.rglob("*") if file.is_file()):
            kept = self.content.get(file.stat().st_ino, b"")
            if file.read_bytes() != kept:
                file.write_bytes(kept)

    def cut_power_before_renames(self, root: Path) -> None:
        """The same, and every folder falls back to the names that it had when last synced."""
        for folder in sorted(path for path in root.rglob("*") if path.is_dir()):
            if folder.exists():
                self._restore_names(folder, self.names.get(folder, {}))
        self.cut_power(root)

    def _restore_names(self, folder: Path, names: Mapping[str, tuple[int, bytes]]) -> None:
        for path in folder.iterdir():
            if path.is_file() and names.get(path.name, (0,))[0] != path.stat().st_ino:
                path.unlink()
        for name, (_, content) in names.items():
            if not (folder / name).exists():
                (folder / name).write_bytes(content)
                self.content[(folder / name).stat().st_ino] = content


def _write_half(call: Callable[..., Any], args: Any, kwargs: Any) -> None:
    """What is in a file when a process is killed while writing it."""
    if call.__name__ == "append":
        folder, name = args[:2]
        before = folder.length(name)
        call(*args, **kwargs)
        _cut(folder.path / name, (before + folder.length(name)) // 2)
    elif call.__name__ == "write_text":
        call(*args, **kwargs)
        _cut(args[0], args[0].stat().st_size // 2)
    elif call.__name__ == "_sync" and args[0].is_file() and args[0].name.startswith("."):
        # Arrays and tensors before the rename. Tables are synced, too, but were written before.
        _cut(args[0], args[0].stat().st_size // 2)


def _cut(file: Path, length: int) -> None:
    with file.open("r+b") as stream:
        stream.truncate(length)


ERRORS = {"EIO": errno.EIO, "ENOSPC": errno.ENOSPC}
FAULTS = ("kill", "kill in a write", "power cut", "power cut before renames", *ERRORS)


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
