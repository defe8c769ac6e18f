"""Files of a results folder that no recorded run needs any more.

A replay memory is needed while a run that holds its segment still has a task to train. Weights at a
segment's end, evaluations and records are never touched: reports, and sequences that begin alike,
use them.
"""

import shutil
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cwbench.store import checkpoint, claims
from cwbench.store.integrity import snapshot_parts
from cwbench.store.results import SegmentFolder, read_experiments, read_segments

OLD_SECONDS = 3600.0  # a temporary file this old is nobody's: one is written in a moment


@dataclass(frozen=True)
class Leftover:
    """A file or folder that can go."""

    path: Path
    kind: str
    bytes: int

    def remove(self) -> None:
        if self.path.is_dir():
            shutil.rmtree(self.path)
        else:
            self.path.unlink(missing_ok=True)


def leftovers(root: Path) -> tuple[list[Leftover], list[str]]:
    """What can go. Nothing, but the problems, if a record cannot be read: it may need anything."""
    problems: list[str] = []
    states = {
        record["id"]: (record["folder"], record["status"]["state"])
        for record in read_segments(root, problems)
    }
    needed = set(_needed(read_experiments(root, problems), states))
    if problems:
        return [], problems
    found = list(_temporary(root / "experiments"))
    for key, (name, state) in sorted(states.items(), key=lambda item: item[1]):
        folder = SegmentFolder(root / "segments" / name)
        if claims.owner(folder) is None:  # else someone is at work in it
            found += _of_segment(folder, done=state == "done", needed=key in needed)
    return found, []


def _needed(
    experiments: Iterable[Mapping[str, Any]], states: Mapping[str, tuple[str, str]]
) -> Iterator[str]:
    """Segments from which a recorded run still has to go on."""
    for experiment in experiments:
        for run in experiment["runs"]:
            ids = run["segments"]
            left = [n for n, key in enumerate(ids) if states.get(key, ("", ""))[1] != "done"]
            yield from ids[: max(left, default=0)]


def _of_segment(folder: SegmentFolder, *, done: bool, needed: bool) -> Iterator[Leftover]:
    yield from _temporary(folder.path)
    if (claim := folder.path / "claim.json").exists():
        yield _leftover(claim, "claim of a process that is gone")
    if done and not needed and folder.replay.exists():
        yield _leftover(folder.replay, "replay memory")
    place = folder.snapshot.parent
    if place.exists():
        if done or not folder.snapshot.exists():
            yield _leftover(place, "snapshot")
        else:
            parts = snapshot_parts(checkpoint.load_record(folder.snapshot), folder.snapshot)
            for file in sorted(place.glob("replay-*.npy")):
                if file.name not in parts:
                    yield _leftover(file, "part of a lost snapshot")
            yield from _temporary(place)


def _temporary(folder: Path) -> Iterator[Leftover]:
    """Files that a process was writing, or putting aside, when it was killed."""
    for file in sorted(folder.glob(".*")):
        if file.is_file() and time.time() - file.stat().st_mtime > OLD_SECONDS:
            yield _leftover(file, "temporary file")


def _leftover(path: Path, kind: str) -> Leftover:
    files = [path] if path.is_file() else path.rglob("*")
    return Leftover(path, kind, sum(file.stat().st_size for file in files if file.is_file()))
