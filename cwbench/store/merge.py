"""Several results folders as one: the finished segments of each, with their records unchanged."""

import errno
import gzip
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

from cwbench.spec.errors import UserError
from cwbench.store import files, tuning
from cwbench.store.claims import Claims
from cwbench.store.files import check_inside, hidden, read_bytes, read_json, replacing
from cwbench.store.records import Problem, listing
from cwbench.store.results import (
    FINAL_FILES,
    SegmentFolder,
    Store,
    is_results,
    is_weights,
    read_experiments,
    read_segments,
    segment_record,
)

Experiment = dict[str, Any]  # its record

ARCHIVES = (".tar.gz", ".tgz")
OTHER_ARCHIVES = (".zip", ".tar", ".gz", ".bz2", ".xz", ".zst", ".tbz2", ".txz", ".7z", ".rar")


@dataclass
class Merged:
    """What a merge did."""

    added: int = 0
    replaced: int = 0  # of these, where the target's own was damaged
    present: int = 0  # segments that the target already had
    repeated: int = 0  # that an earlier source has, too
    unfinished: list[str] = field(default_factory=list)  # left out
    damaged: list[str] = field(default_factory=list)  # left out
    problems: list[str] = field(default_factory=list)


def merge(
    sources: Sequence[Path],
    target: Path,
    *,
    weights: bool = False,
    experiments: Sequence[str] = (),
) -> Merged:
    """Add the finished segments of `sources` to `target`, a folder or an archive.

    Records, evaluations and curves are copied; weights and replay only if asked for. With names of
    `experiments`, only what these asked for. Two segments of one id must have the same evaluations:
    this is checked for all before anything is written.
    """
    merged = Merged()
    with ExitStack() as stack:
        folders = [stack.enter_context(opened(source)) for source in sources]
        own = stack.enter_context(Claims())
        asked = {source: list(read_experiments(source, merged.problems)) for source in folders}
        with _written(target) as folder:
            found = {source: _finished(source, merged) for source in folders}
            if experiments:
                asked = _named(asked, experiments)
                found = _part(found, chain.from_iterable(asked.values()), merged)
            found = {
                source: [one for one in segments if _intact(one, source, weights, merged)]
                for source, segments in found.items()
            }
            every = list(chain.from_iterable(found.values()))
            _check_links(folder, every)
            damaged = _damaged(folder, {segment.name for segment in every}, weights)
            there = [one for one in _finished(folder, Merged()) if one.name not in damaged]
            _check([*there, *every])
            seen: set[str] = set()
            lasting = folder == target  # not what is packed
            for source, segments in found.items():
                for segment in segments:
                    copy = folder / "segments" / segment.name
                    intact = copy.exists() and copy.name not in damaged
                    denied = [one for one in damaged.get(copy.name, ()) if one.denied]
                    if intact and not _lacks(copy, segment, weights):
                        merged.repeated += segment.name in seen
                        merged.present += segment.name not in seen
                    elif denied:  # whether it is damaged cannot be told
                        merged.problems += denied
                    elif problem := _add_segment(segment, copy, weights, own, lasting=lasting):
                        merged.problems += [*damaged.get(copy.name, []), problem]
                    else:
                        merged.replaced += damaged.pop(copy.name, None) is not None
                        merged.added += 1
                    seen.add(segment.name)
                _add_code(source, folder, merged, segments if experiments else None)
                methods = {run["method"] for one in asked[source] for run in one["runs"]}
                _add_tuning(source, folder, merged, methods if experiments else None)
                for experiment in asked[source]:
                    Store(folder).add_experiment(
                        {key: value for key, value in experiment.items() if key != "schema"}
                    )
    return merged


def archive_stem(path: Path) -> str:
    """Name of a folder, or of an archive without its ending."""
    return path.name.removesuffix(".tar.gz").removesuffix(".tgz")


@contextmanager
def opened(path: Path) -> Iterator[Path]:
    """The results folder at this path; an archive is unpacked for as long as it is needed."""
    if path.is_dir():
        _readable(path)
        yield path
    elif path.name.endswith(ARCHIVES) and path.is_file():
        with tempfile.TemporaryDirectory() as temporary:
            yield _unpacked(path, Path(temporary))
    else:
        raise UserError(f"{path}: no such folder or archive", "give a results folder or a .tar.gz")


def _unpacked(archive: Path, into: Path) -> Path:
    try:
        with gzip.open(archive) as stream:
            with tarfile.open(fileobj=stream, mode="r:") as packed:
                packed.extractall(into, filter="data")
            # A damaged entry reads as the end of the archive; gzip's checksum is at the real one.
            while stream.read(1 << 20):
                pass
    except (tarfile.TarError, EOFError, OSError, zlib.error) as error:
        raise UserError(f"{archive}: cannot be unpacked ({error})") from None
    inside = list(into.iterdir())
    folder = inside[0] if len(inside) == 1 and inside[0].is_dir() else into
    _readable(folder, archive)
    return folder


def _readable(folder: Path, shown: Path | None = None) -> None:
    if not is_results(folder):
        raise UserError(f"{shown or folder}: not a results folder", "it has no segments")
    _check_version(folder, shown)


def _check_version(folder: Path, shown: Path | None = None) -> None:
    if newer := Store(folder).newer_schema():
        raise UserError(f"{newer.name} of {shown or folder} was written by a newer cwbench")


@contextmanager
def _written(target: Path) -> Iterator[Path]:
    """The folder to add to. An archive is unpacked first and packed again afterwards."""
    if target.name.endswith(OTHER_ARCHIVES) and not target.name.endswith(ARCHIVES):
        raise UserError(f"--into {target}: not a kind of archive that is written", "use .tar.gz")
    if not target.name.endswith(ARCHIVES):
        if target.exists() and not target.is_dir():
            raise UserError(f"--into {target}: a file, not a folder")
        _check_version(target)
        yield target
        for path in (target / "segments", target, target.parent):
            if path.exists():
                files.sync(path)
        return
    with tempfile.TemporaryDirectory() as temporary:
        name, before = archive_stem(target), _version(target)
        folder = _unpacked(target, Path(temporary)) if before else Path(temporary) / name
        yield folder
        target.parent.mkdir(parents=True, exist_ok=True)
        with replacing(target) as half:
            with tarfile.open(half, "w:gz") as packed:
                packed.add(folder, name, filter=_plain)
            if _version(target) != before:
                raise UserError(f"--into {target}: changed meanwhile", "run the command again")
        files.sync(target.parent)


def _version(archive: Path) -> tuple[int, int, int] | None:
    """Differs once the archive has been replaced; None where there is none."""
    if not archive.exists():
        return None
    found = archive.stat()
    return found.st_ino, found.st_size, found.st_mtime_ns


def _plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """Without what says more about the packing machine than about the results."""
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


def _finished(root: Path, merged: Merged) -> list[Path]:
    """Folders of done and diverged segments; the others are noted."""
    found, problems = [], list[Problem]()
    for record in read_segments(root, problems):
        state = record["status"]["state"]
        if state in ("done", "diverged"):
            found.append(root / "segments" / record["folder"])
        elif state != "damaged":
            merged.unfinished.append(record["folder"])
        elif not problems[-1].denied:  # its own, listed just now
            merged.damaged.append(record["folder"])
    merged.problems += problems
    return found


def _intact(segment: Path, root: Path, weights: bool, merged: Merged) -> bool:
    """Whether what is to be copied is what was written; a damaged segment is noted."""
    problems: list[Problem] = []
    with listing(root, problems, segment):
        SegmentFolder(segment).check_files(weights=weights)
    merged.problems += problems
    merged.damaged += [segment.name for one in problems if not one.denied]
    return not problems


def _damaged(root: Path, names: Iterable[str], weights: bool) -> dict[str, list[Problem]]:
    """Segments with these names that are in the target and not what was written: what is wrong."""
    found: dict[str, list[Problem]] = {}
    for segment in (root / "segments" / name for name in names):
        problems: list[Problem] = []
        with listing(root, problems, segment):
            if segment.exists():
                segment_record(root, segment / "segment.json")
                SegmentFolder(segment).check_files(weights=weights)
        if problems:
            found[segment.name] = problems
    return found


def _check(segments: Sequence[Path]) -> None:
    """No two of one name may have different numbers."""
    known: dict[str, Path] = {}
    for segment in segments:
        first = known.setdefault(segment.name, segment)
        if first != segment and _numbers(first) != _numbers(segment):
            raise UserError(
                f"{segment.name} has different evaluations in {segment.parents[1]} and "
                f"{first.parents[1]}",
                "nothing is merged; leave one of the two out",
            )


def _check_links(target: Path, segments: Iterable[Path]) -> None:
    """Nothing may be written to where a link leads out of the target."""
    names = (f"segments/{segment.name}" for segment in segments)
    for name in ("segments", "experiments", "sources", "tuning", *names):
        check_inside(target, target / name)


def _numbers(segment: Path) -> tuple[Any, bytes]:
    evals = segment / "evals.csv"
    return read_json(segment / "segment.json")["id"], evals.read_bytes() if evals.exists() else b""


def _add_segment(source: Path, target: Path, weights: bool, own: Claims, *, lasting: bool) -> str:
    """Copy a segment that nobody is training; returns the reason if it is left out."""
    name, root, there = target.name, target.parents[1], SegmentFolder(target)
    replaces = target.exists()
    if replaces and not there.done and not own.take(there):
        return f"{name} is being trained in {root}: left out"
    half, aside = hidden(target), hidden(target)
    try:
        new = SegmentFolder(source)
        state = "paused" if there.snapshot.exists() else "damaged"
        if (there.snapshot.exists() or there.end.exists()) and not (weights and new.end.exists()):
            return f"{name} is {state} in {root}: a copy without weights is left out"
        if there.replay.exists() and new.cleaned:
            return f"{name} is {state} in {root}: a copy without its transitions is left out"
        with _blaming(target):
            _copy(source, half, weights)
            if lasting:
                files.sync_tree(half)
        try:
            _put(half, target, aside if replaces else None)
        except OSError:
            return f"{name} has changed in {root} meanwhile: left out; run the command again"
        if lasting and replaces:
            files.sync(target.parent)  # before the old one is gone
        shutil.rmtree(aside, ignore_errors=True)
    finally:
        shutil.rmtree(half, ignore_errors=True)
        own.release(there)
    return ""


@contextmanager
def _blaming(target: Path) -> Iterator[None]:
    """Name the target in errors of a full disk: those of `shutil` name what was copied."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise files.naming(target, error) from error
        raise


def _copy(source: Path, target: Path, weights: bool) -> None:
    target.mkdir(parents=True)
    for file in (source / name for name in ("status.json", *FINAL_FILES)):
        if file.is_file() and not file.is_symlink() and (weights or not is_weights(file.name)):
            shutil.copy2(file, target)
    replay = SegmentFolder(source).replay
    if weights and replay.is_dir() and not replay.is_symlink():
        (target / replay.name).mkdir()
        for file in replay.iterdir():
            if file.is_file() and not file.is_symlink():
                shutil.copy2(file, target / replay.name)
    if not weights:
        _mark(target)


def _put(half: Path, target: Path, aside: Path | None) -> None:
    """Rename a whole copy, so that a crash leaves no half; OSError for an unexpected target.

    What it replaces is `aside` then; None: there was nothing.
    """
    if aside:
        target.rename(aside)
    try:
        half.rename(target)
    except OSError:
        if aside and not target.exists():
            aside.rename(target)
        raise


def _lacks(target: Path, source: Path, weights: bool) -> bool:
    """Whether a segment of the target is unfinished, or lacks files that are to be copied."""
    there, here = SegmentFolder(target), SegmentFolder(source)
    if there.state not in ("done", "diverged"):
        return True
    lost = (there.records_only and not here.records_only) or (there.cleaned and not here.cleaned)
    return weights and lost


def _mark(segment: Path) -> None:
    """Say in its status that its weights were left behind; their checksums go."""
    folder = SegmentFolder(segment)
    status = folder.intact_status()
    checksums = status.get("checksums", {})
    kept = {name: value for name, value in checksums.items() if not is_weights(name)}
    folder.set_status(**status | {"checksums": kept, "records_only": True})


def _named(
    asked: Mapping[Path, Sequence[Experiment]], names: Sequence[str]
) -> dict[Path, list[Experiment]]:
    """The experiments with these names, all of which there must be."""
    known = {experiment["name"] for own in asked.values() for experiment in own}
    if missing := [name for name in names if name not in known]:
        raise UserError(
            f"--experiment {missing[0]}: no such experiment",
            f"there are {', '.join(sorted(known))}",
        )
    return {
        source: [experiment for experiment in own if experiment["name"] in names]
        for source, own in asked.items()
    }


def _part(
    found: Mapping[Path, Sequence[Path]], experiments: Iterable[Experiment], merged: Merged
) -> dict[Path, list[Path]]:
    """The segments that these experiments have. Names of folders end with the segment's id."""
    ends = tuple(f"-{id}" for one in experiments for run in one["runs"] for id in run["segments"])
    merged.unfinished = [name for name in merged.unfinished if name.endswith(ends)]
    return {
        source: [one for one in segments if one.name.endswith(ends)]
        for source, segments in found.items()
    }


def _add_code(source: Path, target: Path, merged: Merged, used: Sequence[Path] | None) -> None:
    """Code of methods from outside the package: all, or what these segments were trained with.

    Who gives some experiments away may not want to publish the methods of others.
    """
    codes: list[Path] = []
    with listing(source, merged.problems, source / "sources"):
        codes = files.entries(source / "sources", "*.py")
    if used is not None:
        named = {segment_record(source, one / "segment.json")["source"] for one in used}
        codes = [code for code in codes if code.stem in named]
    for code in codes:
        with listing(source, merged.problems, code):
            Store(target).add_source(code.stem, read_bytes(check_inside(source, code)))


def _add_tuning(source: Path, target: Path, merged: Merged, methods: set[str] | None) -> None:
    """Which options were chosen: of all methods, or of these."""
    for record in tuning.read_all(source, merged.problems):
        if methods is None or record["method"] in methods:
            tuning.write(target, record)
