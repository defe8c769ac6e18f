"""Who trains a segment, when several processes share a results folder.

A claim is a file that only one process can create; its token says which. The owner changes the
file's time every few seconds. On the same machine a claim is free when its process is gone; on
another one, when the file has not changed for minutes. The change is timed by the process that
watches, so clocks may differ. Works on shared file systems: creating a link and renaming a file are
atomic there, while locks often are not.
"""

import contextlib
import json
import os
import platform
import threading
import time
import uuid
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from cwbench.store.files import Damaged, Unreadable, Unusable, read_json
from cwbench.store.results import CLAIM, SegmentFolder, claim_token

BEAT_SECONDS = 20.0
STALE_SECONDS = 180.0  # several beats, for busy file systems
EMPTY_SECONDS = 5.0  # a claim without content is being written, or its writer was killed
OLD_SECONDS = 86_400.0  # no two clocks of working machines differ by this much
ENDED = ("Z", "X")  # states of a process that has ended and is still listed

Sign = tuple[str, int]  # a claim's token and its file's time: whether it has changed


class Claims:
    """The segments this process has taken, kept alive by a thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.token = uuid.uuid4().hex
        self.held: set[Path] = set()
        self._clock = clock
        self._seen: dict[Path, tuple[Sign, float]] = {}  # others' claims, and since when
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._beat, daemon=True)

    def __enter__(self) -> "Claims":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()
        for file in list(self.held):
            self._drop(file)

    def _beat(self) -> None:
        while not self._end.wait(BEAT_SECONDS):
            for file in list(self.held):
                with contextlib.suppress(OSError):
                    if claim_token(file) == self.token:
                        os.utime(file)

    def take(self, folder: SegmentFolder) -> bool:
        """Whether the segment is now this process's to train."""
        file = folder.path / CLAIM
        if not self._create(file) and not (self._clear(file) and self._create(file)):
            return False
        self.held.add(file)
        if folder.done:  # another process finished it since the plan was made
            self.release(folder)
            return False
        return True

    def elsewhere(self, folder: SegmentFolder) -> bool:
        """Whether a living process other than this one has taken the segment."""
        file = folder.path / CLAIM
        if file in self.held or (sign := _sign(file)) is None:
            return False
        return sign[0] != self.token and not self._abandoned(file, sign)

    def release(self, folder: SegmentFolder) -> None:
        self._drop(folder.path / CLAIM)

    def clear(self, folder: SegmentFolder) -> bool:
        """Remove the claim of a process that has died; whether there is none now."""
        return self._clear(folder.path / CLAIM)

    def _drop(self, file: Path) -> None:
        self.held.discard(file)
        with contextlib.suppress(OSError):
            if claim_token(file) == self.token:
                file.unlink(missing_ok=True)

    def _abandoned(self, file: Path, sign: Sign) -> bool:
        """Whether a claim's owner is dead."""
        alive = _owner_lives(file)
        if alive is not None:
            return not alive
        if self._seen.get(file, (None,))[0] != sign:
            self._seen[file] = sign, self._clock()
        seconds = self._clock() - self._seen[file][1]
        return seconds > (STALE_SECONDS if sign[0] else EMPTY_SECONDS) or _is_old(file)

    def _create(self, file: Path) -> bool:
        """A claim appears with its content, or not at all."""
        temporary = file.with_name(f".claim.{self.token}")
        temporary.write_text(json.dumps({"token": self.token, **_this_process()}), encoding="utf-8")
        try:
            file.hardlink_to(temporary)
        except FileExistsError:  # NFS may have made it, lost the reply and been asked again
            return (_sign(file) or ("",))[0] == self.token
        except OSError:  # a file system without links
            return _create_exclusively(file, temporary.read_text(encoding="utf-8"))
        finally:
            temporary.unlink(missing_ok=True)
        return True

    def _clear(self, file: Path) -> bool:
        """Remove a claim whose owner has died; of several processes that try, one succeeds."""
        sign = _sign(file)
        if sign is None:
            return True
        if not self._abandoned(file, sign):
            return False
        aside = file.with_name(f".claim.{self.token}.old")
        with contextlib.suppress(FileNotFoundError):
            file.rename(aside)
            if claim_token(aside) != sign[0]:
                # Someone else cleared the old claim in between, and this is the new one.
                with contextlib.suppress(OSError):
                    file.hardlink_to(aside)  # never over a third one
                aside.unlink()
                return False
            aside.unlink()
        return True


def owner(folder: SegmentFolder) -> str:
    """The living process at work in a segment's folder, as host:pid; empty if there is none.

    A single look: a silent process of another machine counts as alive for a day.
    """
    file = folder.path / CLAIM
    alive = _owner_lives(file)
    if alive is False or (alive is None and _is_old(file)):
        return ""
    try:
        record = read_json(file)
    except Unreadable:
        return "another user"
    except (Damaged, FileNotFoundError):
        return ""
    return f"{record.get('host', '?')}:{record.get('pid', 0)}"


def _create_exclusively(file: Path, text: str) -> bool:
    try:
        with file.open("x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError:
        return False
    return True


def _sign(file: Path) -> Sign | None:
    """None where there is no claim."""
    try:
        return claim_token(file), file.stat().st_mtime_ns
    except FileNotFoundError:
        return None


def _is_old(file: Path) -> bool:
    try:
        return abs(time.time() - file.stat().st_mtime) > OLD_SECONDS  # a clock may have been wrong
    except FileNotFoundError:
        return True
    except PermissionError:
        return False


def _this_process() -> dict[str, Any]:
    pid = os.getpid()
    return {
        "host": platform.node(),
        "pid": pid,
        "started": _started(pid),
        "pid_namespace": _pid_namespace(),
    }


@cache
def _pid_namespace() -> str:
    """Where a process id means one process: one boot of one machine, one container."""
    with contextlib.suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    return platform.node()


def _started(pid: int) -> str:
    """When a process started, in the kernel's ticks: process ids are reused. Empty if not known.

    A process that has ended keeps its id until its parent has asked for its exit code.
    """
    with contextlib.suppress(OSError, IndexError):
        state, *numbers = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return "ended" if state in ENDED else numbers[18]
    return ""


def _owner_lives(file: Path) -> bool | None:
    """Whether a claim's owner runs; None if that cannot be told from here."""
    try:
        record = read_json(file)
    except (Unusable, FileNotFoundError):
        return None
    if record.get("pid_namespace") != _pid_namespace() or not isinstance(record.get("pid"), int):
        return None
    try:
        os.kill(record["pid"], 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:  # alive, and someone else's
        pass
    now, then = _started(record["pid"]), record.get("started", "")
    if then and not now:  # /proc may hide other users' processes
        return None
    return bool(now == then)
