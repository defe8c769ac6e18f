"""Whether the files of segments are what was written, by their checksums."""

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from cwbench.spec.errors import UserError
from cwbench.store import checkpoint, claims, files
from cwbench.store.files import Damaged, Unusable, check_inside, is_inside
from cwbench.store.records import Problem, listing
from cwbench.store.results import (
    DIAGNOSTICS,
    SegmentFolder,
    Store,
    read_experiments,
    segment_folders,
    segment_record,
)

TABLES = ("evals.csv", "train.csv", DIAGNOSTICS)
PART = re.compile(r"replay-\d{1,9}-\d{1,12}\.npy")


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


def snapshot_step(folder: SegmentFolder) -> int:
    """The step of a snapshot, 0 where there is none: runs at the same step can train together."""
    if not files.is_file(folder.snapshot):
        return 0
    step = checkpoint.load_record(folder.snapshot).get("step")
    if not isinstance(step, int):
        raise Damaged(folder.snapshot, f"step is {step!r:.40}")
    return step


def saved_step(folder: SegmentFolder) -> int:
    """Where a segment continues: 0, too, where training will report an unusable snapshot."""
    try:
        return snapshot_step(folder)
    except Unusable:
        return 0


def check_links(folder: SegmentFolder) -> None:
    """Damaged if something in a segment's folder is a link: writing there could write anywhere."""
    for inner in (folder.path, folder.snapshot.parent, folder.replay):
        for path in files.entries(inner):
            if path.is_symlink():
                raise Damaged(path, "a link")


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
    """UserError if children cannot start from what a finished segment left."""
    if folder.records_only:
        raise without_weights(folder)
    folder.check_files()
    if not files.is_file(folder.end):
        raise Damaged(folder.end, "missing")


def without_weights(folder: SegmentFolder) -> UserError:
    """The error where training is to continue in a folder that was merged without weights."""
    return UserError(
        f"{folder.path.name} is done, but its weights are not in {folder.path.parents[1]}",
        "use another results folder, or merge with --weights",
    )


# A whole folder

Check = Callable[[SegmentFolder], None]


def quick_check(folder: SegmentFolder) -> None:
    """Whether everything can be read; looks at no array."""
    folder.intact_status()
    if files.is_file(folder.end):
        checkpoint.load_record(folder.end)
    if files.is_file(state := folder.snapshot):
        record = checkpoint.load_record(state)
        snapshot_parts(record, state)
        table_lengths(record, state)


def full_check(folder: SegmentFolder) -> None:
    """Every byte that a checksum was recorded for."""
    quick_check(folder)
    if folder.done:
        folder.check_files()
        if files.is_file(folder.end):
            checkpoint.load(folder.end)
    else:
        check_snapshot(folder)


def damages(root: Path, check: Check) -> Iterator[Problem]:
    """What is damaged in a results folder: records of experiments, then segments.

    Of a folder that is elsewhere the link is named, not what is in it. A segment in training is
    damaged only if it is so at two looks: its files may be replaced while they are read.
    """
    problems: list[Problem] = []
    linked = [name for name in ("experiments", "segments") if not is_inside(root, root / name)]
    for name in linked:
        with listing(root, problems, root / name):
            check_inside(root, root / name)
    experiments = [] if "experiments" in linked else list(read_experiments(root, problems))
    yield from problems
    if "segments" in linked:
        return
    segments = segment_folders(root)
    done = {path.name[-12:] for path in segments if SegmentFolder(path).done}
    paths = (run["segments"] for experiment in experiments for run in experiment["runs"])
    needed = set(needed_segments(paths, done))
    for path in segments:
        if _of_segment(root, path, check, path.name[-12:] in needed):
            yield from _of_segment(root, path, check, path.name[-12:] in needed)


def needed_segments(paths: Iterable[Sequence[str]], done: Collection[str]) -> Iterator[str]:
    """Ids of segments from which a run still has to continue. `paths`: those of each run."""
    for ids in paths:
        left = [n for n, key in enumerate(ids) if key not in done]
        yield from ids[: max(left, default=0)]


def _of_segment(root: Path, path: Path, check: Check, needed: bool) -> list[Problem]:
    problems: list[Problem] = []
    folder = SegmentFolder(path)
    with listing(root, problems, path):
        if not path.is_dir() or path.is_symlink():
            raise Damaged(path, "not a folder")
        check_links(folder)
        if files.is_file(path / "segment.json"):  # else a command was killed before it began
            segment_record(root, path / "segment.json")
        check(folder)
        gone = folder.done and not (folder.records_only or files.is_file(folder.end))
        if needed and gone:
            raise Damaged(folder.end, "missing")
    return problems


def is_still(root: Path, damage: Problem) -> bool:
    """Whether a damage is there at a second look, and no process has come to its segment."""
    if not damage.segment:
        return os.path.lexists(root / damage.file)
    folder = Store(root).named(damage.segment)
    free = os.path.lexists(folder.path) and not claims.owner(folder)
    found = _of_segment(root, folder.path, full_check, needed=True) if free else ()
    return any(not one.denied for one in found)


def is_movable(root: Path, damage: Problem) -> bool:
    """Whether it is a segment or a record in the results folder itself, and damaged for everyone.

    A link in place of one is moved as a link. A link in place of all of them stays, and so does
    everything that it leads to.
    """
    folder = _location(root, damage).parent
    return not damage.denied and folder != root and is_inside(root, folder)


def _location(root: Path, damage: Problem) -> Path:
    return root / "segments" / damage.segment if damage.segment else root / damage.file


def set_aside(root: Path, damage: Problem) -> Path:
    """Move a damaged segment, or another file, to RESULTS/damaged; returns where it is now."""
    damaged = _location(root, damage)
    check_inside(root, damaged.parent)
    aside = check_inside(root, root / "damaged")
    aside.mkdir(exist_ok=True)
    names = (f"{damaged.name}{end}" for end in ("", *(f".{n}" for n in range(1, 10_000))))
    target = next(aside / name for name in names if not os.path.lexists(aside / name))
    damaged.rename(target)
    for folder in (aside, damaged.parent):
        files.sync(folder)
    return target
