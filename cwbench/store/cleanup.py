"""Files of a results folder that no recorded run needs any more.

A replay memory is needed while a run that holds its segment still has a task to train. Weights at a
segment's end, evaluations and records are never touched: reports, and sequences that begin alike,
use them.
"""

import contextlib
import shutil
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from cwbench.store import checkpoint, claims, files
from cwbench.store.claims import Claims
from cwbench.store.files import check_inside
from cwbench.store.integrity import needed_segments, snapshot_parts
from cwbench.store.results import CLAIM, SegmentFolder, Store, read_experiments, read_segments

OLD_SECONDS = 3600.0  # a temporary file this old is nobody's: one is written in a moment


@dataclass(frozen=True)
class Leftover:
    """A file or folder that can go."""

    path: Path
    kind: str
    bytes: int
    segment: SegmentFolder | None = None

    def hide(self) -> Path | None:
        """Rename it, in one step; its name then, or None if a process has come to the segment."""
        if self.segment and claims.owner(self.segment):
            return None
        aside = files.hidden(self.path)
        with contextlib.suppress(FileNotFoundError):  # someone else removes it
            self.path.rename(aside)
            return aside
        return None


def remove(root: Path, listed: Iterable[Leftover]) -> list[Leftover]:
    """Remove what was listed and can still go at a second look; returns it.

    All of it is hidden first: deleting takes long enough for another process to come.
    """
    found, _ = leftovers(root)
    now = {item.path for item in found}
    gone, hidden = [], []
    for item in (item for item in listed if item.path in now):
        if item.path.name == CLAIM:
            if Claims().clear(SegmentFolder(item.path.parent)):
                gone.append(item)
        elif aside := item.hide():
            gone.append(item)
            hidden.append(aside)
    for path in hidden:
        if path.is_dir() and not path.is_symlink():  # a link goes, not what it points to
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    return gone


def leftovers(root: Path) -> tuple[list[Leftover], list[str]]:
    """What can go. Nothing, but the problems, if a record cannot be read: it may need anything."""
    problems: list[str] = []
    states = {
        record["id"]: (record["folder"], record["status"]["state"])
        for record in read_segments(root, problems)
    }
    done = {key for key, (_, state) in states.items() if state == "done"}
    experiments = read_experiments(root, problems)
    paths = (run["segments"] for experiment in experiments for run in experiment["runs"])
    needed = set(needed_segments(paths, done))
    if problems:
        return [], problems
    found = list(_temporary(check_inside(root, root / "experiments")))
    found += _half_merged(check_inside(root, root / "segments"))
    for key, (name, state) in sorted(states.items(), key=lambda item: item[1]):
        folder = Store(root).named(name)
        if not claims.owner(folder):  # else someone is at work in it
            found += _of_segment(folder, done=state == "done", needed=key in needed)
    return found, []


def _of_segment(folder: SegmentFolder, *, done: bool, needed: bool) -> Iterator[Leftover]:
    yield from _temporary(folder.path, folder)
    for path in sorted(folder.path.glob(".*")):
        if path.is_dir() and not path.is_symlink():
            yield _leftover(path, "rest of a removed folder", folder)
    if (claim := folder.path / CLAIM).exists():
        yield _leftover(claim, "claim of a process that is gone", folder)
    if done and not needed and folder.replay.is_dir() and not folder.replay.is_symlink():
        yield _leftover(folder.replay, "replay memory", folder)
    snapshot = folder.snapshot.parent
    if snapshot.is_symlink():  # someone keeps it elsewhere
        return
    if snapshot.exists():
        if done or not folder.snapshot.exists():
            yield _leftover(snapshot, "snapshot", folder)
        else:
            parts = snapshot_parts(checkpoint.load_record(folder.snapshot), folder.snapshot)
            for file in sorted(snapshot.glob("replay-*.npy")):
                if file.name not in parts:
                    yield _leftover(file, "part of a lost snapshot", folder)
            yield from _temporary(snapshot, folder)


def _half_merged(segments: Path) -> Iterator[Leftover]:
    """Folders that a merge was copying, or replacing, when it was killed."""
    for folder in sorted(segments.glob(".*")):
        ours = folder.is_dir() and not folder.is_symlink()
        if ours and _is_old(folder, *folder.rglob("*")):  # copies keep their times, folders do not
            yield _leftover(folder, "rest of a merge")


def _is_old(*paths: Path) -> bool:
    with contextlib.suppress(FileNotFoundError):  # someone is at work there
        return all(time.time() - path.lstat().st_mtime > OLD_SECONDS for path in paths)
    return False


def _temporary(folder: Path, segment: SegmentFolder | None = None) -> Iterator[Leftover]:
    """Files that a process was writing, or putting aside, when it was killed."""
    for file in sorted(folder.glob(".*")):
        if file.is_file() and not file.is_symlink() and _is_old(file):
            yield _leftover(file, "temporary file", segment)


def _leftover(path: Path, kind: str, segment: SegmentFolder | None = None) -> Leftover:
    inside = [path] if path.is_file() else [] if path.is_symlink() else path.rglob("*")
    size = sum(file.stat().st_size for file in inside if file.is_file())
    return Leftover(path, kind, size, segment)
