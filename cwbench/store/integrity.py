"""Whether the files of segments are what was written, by their checksums."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cwbench.store import checkpoint, files
from cwbench.store.files import Damaged
from cwbench.store.results import (
    FINAL_FILES,
    SegmentFolder,
    listing,
    read_experiments,
    segment_record,
)

TABLES = ("evals.csv", "train.csv")
PART = re.compile(r"replay-\d{1,9}-\d{1,12}\.npy")
REPLAY = re.compile(r"replay/[\w-]+\.npy")


def snapshot_parts(record: Mapping[str, Any], state: Path) -> dict[str, str | None]:
    """The files of transitions that a snapshot needs, with their checksums if it has them."""
    parts = record.get("parts")
    if not isinstance(parts, dict | list) or not all(map(_is_part, parts)):
        raise Damaged(state, f"parts is {parts!r:.60}")
    return dict(parts) if isinstance(parts, dict) else dict.fromkeys(parts)


def _is_part(name: Any) -> bool:
    return isinstance(name, str) and PART.fullmatch(name) is not None


def table_lengths(record: Mapping[str, Any], state: Path) -> dict[str, int]:
    """How long the tables were when a snapshot was taken."""
    lengths = record.get("files")
    if not isinstance(lengths, dict) or not set(lengths) <= set(TABLES):
        raise Damaged(state, f"files is {lengths!r:.60}")
    if not all(isinstance(length, int) and length >= 0 for length in lengths.values()):
        raise Damaged(state, f"files is {lengths!r:.60}")
    return {name: lengths.get(name, 0) for name in TABLES}


def check_snapshot(folder: SegmentFolder) -> None:
    """Damaged if a segment's snapshot cannot be continued."""
    state = folder.snapshot
    if not files.is_file(state):
        return
    _, record = checkpoint.load(state)
    for name, checksum in snapshot_parts(record, state).items():
        if not files.is_file(state.parent / name):
            raise Damaged(state.parent / name, "missing")
        files.check(state.parent / name, checksum)
    checksums = record.get("table_checksums", {})
    for name, length in table_lengths(record, state).items():
        if folder.length(name) < length:
            raise Damaged(folder.path / name, f"shorter than the {length} bytes of the snapshot")
        files.check(folder.path / name, checksums.get(name), length)


def check_end(folder: SegmentFolder) -> None:
    """Damaged if children cannot start from what a finished segment left.

    Its replay may be gone: `cwbench clean` removes it when no recorded run needs it.
    """
    for name, checksum in checksums_of(folder).items():
        file = folder.path / name
        if file.exists() or not name.startswith("replay/"):
            files.check(file, checksum)
    if not (files.is_file(folder.end) or folder.records_only):
        raise Damaged(folder.end, "missing")


def checksums_of(folder: SegmentFolder) -> dict[str, str]:
    """Recorded when the segment was done; none in results of version 0.2 and before."""
    found: dict[str, str] = folder.intact_status().get("checksums", {})
    if not all(name in FINAL_FILES or REPLAY.fullmatch(name) for name in found):
        raise Damaged(folder.path / "status.json", f"checksums is {found!r:.60}")
    return found


# A whole folder


@dataclass(frozen=True)
class Damage:
    """A file that is not what was written, and the segment that cannot be used without it."""

    file: str  # inside the results folder
    reason: str
    segment: str  # its folder, empty for other files


Check = Callable[[SegmentFolder], None]


def read_check(folder: SegmentFolder) -> None:
    """Whether records, tables and states can be read at all; looks at no tensor."""
    state = folder.intact_status()["state"]
    if state == "done" and not (files.is_file(folder.end) or folder.records_only):
        raise Damaged(folder.end, "missing")
    for file in (folder.end, folder.snapshot):
        if files.is_file(file):
            checkpoint.load_record(file)


def full_check(folder: SegmentFolder) -> None:
    """Every byte that a checksum was recorded for."""
    read_check(folder)
    if folder.done:
        check_end(folder)
        if not folder.records_only:
            checkpoint.load(folder.end)
    else:
        check_snapshot(folder)


def damages(root: Path, check: Check) -> Iterator[Damage]:
    """What is damaged in a results folder: records, then segments one after another."""
    problems: list[str] = []
    list(read_experiments(root, problems))
    for line in problems:
        file, _, reason = line.partition(": ")
        yield Damage(file, reason, "")
    for path in sorted((root / "segments").glob("*")):
        yield from _of_segment(root, path, check)


def _of_segment(root: Path, path: Path, check: Check) -> Iterator[Damage]:
    problems: list[str] = []
    with listing(root, problems):
        files.check_inside(root, path)
        if path.is_dir():
            segment_record(root, path / "segment.json")
            check(SegmentFolder(path))
    for line in problems:
        file, _, reason = line.partition(": ")
        yield Damage(file, reason, path.name)
