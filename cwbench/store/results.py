"""The results folder: what training leaves on disk. No torch here; `runs` reads it as tables.

    <root>/segments/<folder>/   segment.json  evals.csv  train.csv  diagnostics.csv  retraining.csv
                                status.json  claim.json  end.safetensors  probe.safetensors
                                snapshot/  replay/
    <root>/experiments/<id>.json   the runs one command asked for, as paths of segment ids
    <root>/sources/<hash>.py   code of methods from outside the package

`tuning` writes <root>/tuning/, `launch.jobs` <root>/jobs/; docs/results.md lists all there is.
Counts are stored, not rates. A finished segment is never rewritten.
"""

import contextlib
import csv
import errno
import io
import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cwbench.spec.errors import UserError
from cwbench.spec.segment import SCHEMA, Segment, digest
from cwbench.spec.statistics import EVAL_COLUMNS
from cwbench.store import files
from cwbench.store.files import Damaged, Unreadable, Unusable, read_json, write_json
from cwbench.store.records import (
    EXPERIMENT_KEYS,
    STATUS_KEYS,
    STATUS_TYPES,
    Problems,
    check_run,
    checked,
    checked_segment,
    listing,
)

# Evaluations during updates that a method makes at a task's end.
RETRAINING = "retraining.csv"
RETRAINING_COLUMNS = ("updates", *EVAL_COLUMNS[1:])
# Plasticity, measured at evaluations, and a policy's answers at its task's end, for later ones.
DIAGNOSTICS, PROBE = "diagnostics.csv", "probe.safetensors"
DIAGNOSTICS_COLUMNS = ("step", "quantity", "part", "value")
STATES = ("pending", "running", "done", "failed", "diverged")
WEIGHTS = (PROBE, "end.safetensors")  # and replay/: what reports do not read
# What a done segment keeps, and replay/.
FINAL_FILES = (
    "segment.json",
    "evals.csv",
    "train.csv",
    RETRAINING,
    DIAGNOSTICS,
    *WEIGHTS,
)
REPLAY_FILE = re.compile(r"replay/[\w-]+\.npy")
CLAIM = "claim.json"
# Folders of segments, whose names end in their ids. Not hidden ones or copies such as X.bak.
SEGMENT = "[!.]*-" + 12 * "[0-9a-f]"
SEGMENTS = f"segments/{SEGMENT}"


def is_results(folder: Path) -> bool:
    """Whether it looks like a results folder, maybe of runs that have not begun."""
    return any((folder / name).is_dir() for name in ("segments", "experiments"))


def is_weights(name: str) -> bool:
    """Whether a file of a done segment is there for later tasks, not for reports."""
    return name in WEIGHTS or REPLAY_FILE.fullmatch(name) is not None


class ClaimLost(UserError):
    """Another process has taken, or may take, a segment that this one was training."""

    def __init__(self, folder: Path, *, gone: bool) -> None:
        what = "another process has taken it, since this one was silent for long"
        if gone:
            what = f"its {CLAIM} is gone: another process has taken it and ended, or it was removed"
        hint = "the same command continues" + ("" if gone else " when that one has ended")
        super().__init__(f"{folder.name}: {what}", hint)


def claim_token(file: Path) -> str:
    """Who has claimed a segment; empty where the claim cannot be read."""
    try:
        return str(read_json(file).get("token", ""))
    except Unreadable:
        return "another user"
    except Damaged:
        return ""


@dataclass(frozen=True)
class SegmentFolder:
    """One segment on disk."""

    path: Path
    token: str = ""  # of the process that may write; without one nothing is checked

    @property
    def end(self) -> Path:
        """What a child needs: weights, value statistics, method state. One file, so atomic."""
        return self.path / "end.safetensors"

    @property
    def replay(self) -> Path:
        """This task's transitions, where the method keeps them."""
        return self.path / "replay"

    @property
    def probe(self) -> Path:
        """The policy's answers to some observations at the task's end, for diagnostics."""
        return self.path / PROBE

    @property
    def snapshot(self) -> Path:
        """The middle of the segment; removed when it is done."""
        return self.path / "snapshot" / "state.safetensors"

    @property
    def done(self) -> bool:
        return self.state == "done"

    @property
    def records_only(self) -> bool:
        """Whether it was copied without its weights, by `cwbench merge`."""
        return bool(self.status().get("records_only"))

    @property
    def cleaned(self) -> bool:
        """Whether it kept transitions for later tasks, and `cwbench clean` has removed them."""
        checksums = self.status().get("checksums", {})
        replay = [name for name in checksums if REPLAY_FILE.fullmatch(name)]
        return bool(replay) and not any(files.may_exist(self.path / name) for name in replay)

    @property
    def state(self) -> str:
        """One of STATES, or `damaged`."""
        return str(self.status()["state"])

    def status(self) -> dict[str, Any]:
        """What is known of its training; with state `damaged` where that cannot be read."""
        try:
            return self.intact_status()
        except Unusable as error:
            return {"state": "damaged", "step": 0, "message": str(error)}

    def intact_status(self) -> dict[str, Any]:
        """What is known of its training; Unusable if it is not what was written.

        Also if a table or the record of a done segment is gone.
        """
        record = self._written_status()
        if record["state"] == "done":
            for name in (one for one in FINAL_FILES if one in record.get("checksums", {})):
                if not is_weights(name) and not files.is_file(self.path / name):
                    raise Damaged(self.path / name, "missing")
        return record

    def _written_status(self) -> dict[str, Any]:
        """Damaged if the file is not what was written, whatever has become of the others."""
        file = self.path / "status.json"
        with contextlib.suppress(FileNotFoundError):
            record = read_json(file)
            if record.pop("checksum", None) not in (None, digest(record)):
                raise Damaged(file, "its checksum differs from the recorded one")
            return checked(record, STATUS_KEYS, file, STATUS_TYPES)
        return {"state": "pending", "step": 0}

    def check_claim(self) -> None:
        """ClaimLost if the segment is not this process's any more. Called before every write.

        FileNotFoundError if there is no such folder any more.
        """
        if not self.token:
            return
        # A process that clears an old claim may move ours for a moment.
        for wait in (0.0, 0.5, 1.5):
            time.sleep(wait)
            try:
                token = claim_token(self.path / CLAIM)
            except FileNotFoundError:
                token = ""
                if not self.path.exists():
                    what = "moved or deleted while it was in use"
                    raise FileNotFoundError(errno.ENOENT, what, str(self.path)) from None
            if token == self.token:
                return
            if token:
                break
        raise ClaimLost(self.path, gone=not token)

    def set_status(self, state: str, **content: Any) -> None:
        """Replace the state; numbers that are not given stay as they were, an error does not."""
        assert state in STATES
        self.check_claim()
        writer = {"writer": self.token} if self.token else {}
        now = {"state": state, "message": "", "updated": time.time(), **writer, **content}
        before = {name: value for name, value in self.intact_status().items() if name != "error"}
        record = before | now
        write_json(self.path / "status.json", record | {"checksum": digest(record)})

    def seal(self) -> dict[str, str]:
        """Bring everything to the disk, before the segment is called done; the files' checksums."""
        self.check_claim()
        kept = [self.path / name for name in FINAL_FILES]
        kept = [file for file in (*kept, *sorted(self.replay.glob("*.npy"))) if file.exists()]
        for file in kept:
            files.sync(file)
        for folder in (self.replay, self.path, self.path.parent, self.path.parent.parent):
            if folder.exists():
                files.sync(folder)
        return {str(file.relative_to(self.path)): files.checksum(file) for file in kept}

    def checksums(self) -> dict[str, str]:
        """Recorded when the segment was done; none in results of version 0.2 and before."""
        found: dict[str, str] = self._written_status().get("checksums", {})
        if not all(name in FINAL_FILES or REPLAY_FILE.fullmatch(name) for name in found):
            raise Damaged(self.path / "status.json", f"checksums is {found!r:.60}")
        return found

    def check_files(self, *, weights: bool = True) -> None:
        """Unusable if a file, or one that reports read, is not what it was when it was sealed.

        Its replay may be gone as a whole: `cwbench clean` removes it when no recorded run needs it.
        """
        checksums = self.checksums()
        cleaned = self.cleaned
        for name, checksum in checksums.items():
            if (weights or not is_weights(name)) and not (cleaned and REPLAY_FILE.fullmatch(name)):
                files.check(self.path / name, checksum)

    def create(self, segment: Segment, provenance: Mapping[str, Any]) -> None:
        """Write the record first, so that a folder without one is never a segment."""
        self.path.mkdir(parents=True, exist_ok=True)
        if not (self.path / "segment.json").exists():
            ids = {"parent": segment.parent.id if segment.parent else None}
            ids |= {"expert": segment.expert.id} if segment.expert else {}
            content = {"id": segment.id, **segment.record(), **ids, **provenance}
            write_json(self.path / "segment.json", content)

    def append(self, name: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Add rows to a table such as evals.csv; a file keeps the columns it was begun with."""
        self.check_claim()
        file = self.path / name
        header, before = _header(file), self.length(name)
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, header or columns, extrasaction="ignore", lineterminator="\n")
        if not header:
            writer.writeheader()
        writer.writerows(dict(zip(columns, row, strict=True)) for row in rows)
        try:
            with file.open("a", newline="", encoding="utf-8") as stream:
                stream.write(text.getvalue())
        except OSError as error:  # a full disk: no half a line stays
            with contextlib.suppress(OSError):
                os.truncate(file, before)
            raise files.naming(file, error) from error

    def truncate(self, name: str, length: int) -> None:
        """Cut a file back to what it held when a snapshot was taken."""
        self.check_claim()
        file, found = self.path / name, self.length(name)
        if found < length:
            raise Damaged(file, f"{found} bytes, expected at least {length}")
        if length == 0:
            file.unlink(missing_ok=True)
        elif found > length:
            os.truncate(file, length)

    def length(self, name: str) -> int:
        file = self.path / name
        return file.stat().st_size if files.is_file(file) else 0


@dataclass(frozen=True)
class Store:
    """A results folder."""

    root: Path
    token: str = ""  # of the process that writes, see `claims`

    def folder(self, segment: Segment) -> SegmentFolder:
        found = self.named(files.checked_name(segment.folder, "segment"))
        files.check_inside(self.root, found.path)
        return found

    def named(self, name: str) -> SegmentFolder:
        """The folder of a segment, by a name that was found on disk."""
        return SegmentFolder(self.root / "segments" / name, self.token)

    def add_experiment(self, content: Mapping[str, Any]) -> None:
        """Remember which runs a command asked for; the same runs again are the same file.

        A damaged one is replaced.
        """
        folder = files.check_inside(self.root, self.root / "experiments")
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f"{experiment_name(content)}.json"
        if not any(read_experiments(self.root, [], file.name)) and not file.is_dir():
            write_json(file, {"schema": SCHEMA, **content})
            files.sync(folder)

    def add_source(self, name: str, code: bytes) -> None:
        """Keep the code of a method from outside the package, under the hash that records name."""
        file = files.check_inside(self.root, self.root / "sources") / f"{name}.py"
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            with files.replacing(file) as temporary:
                temporary.write_bytes(code)
            files.sync(file.parent)

    def newer_schema(self) -> Path | None:
        """A file written by a later version of cwbench, if there is one."""
        experiments = files.entries(self.root / "experiments", "*.json")
        for file in (*experiments, *segment_files(self.root)):
            with contextlib.suppress(Unusable, TypeError, OSError):
                if read_json(file).get("schema", 0) > SCHEMA:
                    return file
        return None


def segment_folders(root: Path) -> list[Path]:
    """Sorted; Unreadable if they may not be listed."""
    return files.entries(root / "segments", SEGMENT)


def segment_files(root: Path) -> list[Path]:
    """Records of segments, also of those that this user may not read."""
    found = [folder / "segment.json" for folder in segment_folders(root)]
    return [file for file in found if files.may_exist(file)]


def read_segments(
    root: Path, problems: Problems, folders: Iterable[str] | None = None
) -> Iterator[dict[str, Any]]:
    """Records of the segments on disk, with their folder and status; what is unusable is listed.

    Of all segments, or of those in these folders.
    """
    if folders is None:
        found = segment_files(root)
    else:
        found = sorted(root / "segments" / folder / "segment.json" for folder in folders)
    for file in found:
        with listing(root, problems, file):
            record = segment_record(root, file)
            yield record | {
                "folder": file.parent.name,
                "status": _listed_status(file, root, problems),
            }


def segment_record(root: Path, file: Path) -> dict[str, Any]:
    files.check_inside(root, file)
    return checked_segment(read_json(file), file)


def _listed_status(file: Path, root: Path, problems: Problems) -> dict[str, Any]:
    """A segment's status; `damaged` where it, or the record it belongs to, is not as written."""
    with listing(root, problems, file):
        status = SegmentFolder(file.parent).intact_status()
        files.check(file, status.get("checksums", {}).get(file.name))
        return status
    return {"state": "damaged", "step": 0}


def experiment_name(record: Mapping[str, Any]) -> str:
    """A hash of what was asked for, so that a changed record does not fit its file's name."""
    return digest({"runs": record["runs"], "name": record["name"]})


def read_experiments(
    root: Path, problems: Problems, name: str = "*.json"
) -> Iterator[dict[str, Any]]:
    """What commands asked for; what is unusable, or does not fit its name, is listed."""
    for file in files.entries(root / "experiments", name):
        with listing(root, problems, file):
            files.check_inside(root, file)
            experiment = checked(read_json(file), EXPERIMENT_KEYS, file)
            for run in experiment["runs"]:
                check_run(run, file)
            if experiment_name(experiment) != file.stem:
                raise Damaged(file, "changed since it was written")
            yield experiment


def _header(file: Path) -> list[str]:
    """The names in a CSV's first line; none where there is no file or nothing in it."""
    if not file.exists():
        return []
    with file.open(encoding="utf-8", errors="replace") as stream:
        first = stream.readline().strip()
    return first.split(",") if first else []
