"""Who trains a segment, when several processes share a results folder.

A claim is a file that only one process can create. Its age is the time since its owner last gave a
sign of life, so a process that died holds nothing for ever. Works on shared file systems: creating
a file exclusively and renaming one are atomic there, while locks often are not.
"""

import contextlib
import json
import os
import platform
import threading
import time
import uuid
from pathlib import Path
from types import TracebackType
from typing import Any

from cwbench.store.results import SegmentFolder

BEAT_SECONDS = 20.0
STALE_SECONDS = 180.0  # several beats, for busy file systems and clocks that differ a little


class Claims:
    """The segments this process has taken, kept alive by a thread."""

    def __init__(self) -> None:
        self.token = uuid.uuid4().hex
        self.held: set[Path] = set()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._beat, daemon=True)

    def __enter__(self) -> "Claims":
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end.set()
        self._thread.join()
        for file in list(self.held):
            self._drop(file)

    def _beat(self) -> None:
        while not self._end.wait(BEAT_SECONDS):
            for file in list(self.held):
                with contextlib.suppress(FileNotFoundError):
                    os.utime(file)

    def take(self, folder: SegmentFolder) -> bool:
        """Whether the segment is now this process's to train."""
        file = folder.path / "claim.json"
        if not self._create(file) and not (self._clear(file) and self._create(file)):
            return False
        self.held.add(file)
        if folder.done:  # another process finished it since the plan was made
            self.release(folder)
            return False
        return True

    def elsewhere(self, folder: SegmentFolder) -> bool:
        """Whether a living process other than this one has taken the segment."""
        file = folder.path / "claim.json"
        with contextlib.suppress(FileNotFoundError):
            return file not in self.held and not _abandoned(file)
        return False

    def release(self, folder: SegmentFolder) -> None:
        self._drop(folder.path / "claim.json")

    def _drop(self, file: Path) -> None:
        self.held.discard(file)
        file.unlink(missing_ok=True)

    def _create(self, file: Path) -> bool:
        owner = {"token": self.token, "host": platform.node(), "pid": os.getpid()}
        try:
            with file.open("x", encoding="utf-8") as stream:
                json.dump(owner, stream)
        except FileExistsError:
            return False
        return True

    def _clear(self, file: Path) -> bool:
        """Remove a claim whose owner has died; of several processes that try, one succeeds."""
        aside = file.with_name(f".claim.{self.token}")
        with contextlib.suppress(FileNotFoundError):
            if not _abandoned(file):
                return False
            file.rename(aside)
            if not _abandoned(aside):
                # Someone else cleared the old claim in between, and this is the new one.
                aside.rename(file)
                return False
            aside.unlink()
        return True


def owner(folder: SegmentFolder) -> dict[str, Any] | None:
    """Who is at work in a segment's folder, by host and pid; None if nobody alive is."""
    file = folder.path / "claim.json"
    with contextlib.suppress(FileNotFoundError):
        if not _abandoned(file):
            with contextlib.suppress(json.JSONDecodeError):  # being written this very moment
                found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
                return found
            return {"host": "?", "pid": 0}
    return None


def _abandoned(file: Path) -> bool:
    """Whether a claim's owner is dead: silent for long, or a process that is gone from here."""
    if time.time() - file.stat().st_mtime > STALE_SECONDS:
        return True
    try:
        owner = json.loads(file.read_text(encoding="utf-8"))
    except json.JSONDecodeError:  # being written this very moment
        return False
    if owner["host"] != platform.node():
        return False
    try:
        os.kill(owner["pid"], 0)
    except ProcessLookupError:
        return True
    except PermissionError:  # alive, and someone else's
        return False
    return False
