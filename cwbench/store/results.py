"""The results folder: what training leaves on disk, and how reports read it. No torch here.

    <root>/segments/<folder>/   segment.json  evals.csv  train.csv  diagnostics.csv  status.json
                                end.safetensors  probe.safetensors  snapshot/  replay/
    <root>/experiments/<id>.json   the runs one command asked for, as paths of segment ids

Counts are stored, not rates. A finished segment is never rewritten.
"""

import contextlib
import csv
import io
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cwbench.spec.errors import UserError
from cwbench.spec.segment import SCHEMA, Segment, digest
from cwbench.spec.statistics import EVAL_COLUMNS, MORE_SUCCESSES, TRAIN_COLUMNS
from cwbench.store import files
from cwbench.store.files import Damaged, read_json, write_json

# Evaluations during updates that a method makes at a task's end.
RETRAINING = "retraining.csv"
RETRAINING_COLUMNS = ("updates", *EVAL_COLUMNS[1:])
# Plasticity, measured at evaluations, and a policy's answers at its task's end, for later ones.
DIAGNOSTICS, PROBE = "diagnostics.csv", "probe.safetensors"
DIAGNOSTICS_COLUMNS = ("step", "quantity", "part", "value")
# Columns that a file of any version has; others may be missing from older files.
REQUIRED = {
    "evals": EVAL_COLUMNS,
    "train": ("step", "updates"),
    "diagnostics": DIAGNOSTICS_COLUMNS,
}
TABLES = {
    "evals": (*EVAL_COLUMNS, *MORE_SUCCESSES),
    "train": TRAIN_COLUMNS,
    "diagnostics": DIAGNOSTICS_COLUMNS,
}
STATES = ("pending", "running", "done", "failed", "diverged")
# What a done segment keeps, and replay/.
FINAL_FILES = (
    "segment.json",
    "evals.csv",
    "train.csv",
    RETRAINING,
    DIAGNOSTICS,
    PROBE,
    "end.safetensors",
)
# What records must hold, with its type.
STATUS_KEYS = {"state": str}
STATUS_TYPES = {"step": int, "message": str, "checksums": dict, "sessions": list, "resources": dict}
_GROUPS = ("method_options", "sac", "network", "env", "schedule")
SEGMENT_KEYS = dict.fromkeys(_GROUPS, dict) | {
    "schema": int,
    "id": str,
    "method": str,
    "seed": int,
    "tasks": list,
    "joint": bool,
}
EXPERIMENT_KEYS = {"schema": int, "name": str, "runs": list}
RUN_KEYS = dict.fromkeys(("sequence", "method", "label", "setup", "protocol"), str) | {
    "seed": int,
    "tasks": list,
    "segments": list,
    "steps": list,
}


CLAIM = "claim.json"


class ClaimLost(UserError):
    """Another process has taken a segment that this one was training."""

    def __init__(self, folder: Path) -> None:
        message = f"{folder.name}: another process has taken it, since this one was silent for long"
        super().__init__(message, "the same command continues when that one has ended")


def claim_token(file: Path) -> str:
    """Who has claimed a segment; empty where the claim cannot be read."""
    try:
        return str(read_json(file).get("token", ""))
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
    def state(self) -> str:
        """One of STATES, or `damaged`."""
        return str(self.status()["state"])

    def status(self) -> dict[str, Any]:
        """What is known of its training; with state `damaged` where that cannot be read."""
        try:
            return self.intact_status()
        except Damaged as error:
            return {"state": "damaged", "step": 0, "message": str(error)}

    def intact_status(self) -> dict[str, Any]:
        """What is known of its training; Damaged if it is not what was written."""
        file = self.path / "status.json"
        with contextlib.suppress(FileNotFoundError):
            record = read_json(file)
            if record.pop("checksum", None) not in (None, digest(record)):
                raise Damaged(file, "its checksum differs from the recorded one")
            optional = {key: kind for key, kind in STATUS_TYPES.items() if key in record}
            return checked(record, STATUS_KEYS | optional, file)
        return {"state": "pending", "step": 0}

    def check_claim(self) -> None:
        """ClaimLost if the segment is not this process's any more. Called before every write."""
        if not self.token:
            return
        for wait in (
            0.0,
            0.5,
            1.5,
        ):  # a process that clears an old claim may move ours for a moment
            time.sleep(wait)
            with contextlib.suppress(FileNotFoundError):
                if (token := claim_token(self.path / CLAIM)) == self.token:
                    return
                if token:
                    break
        raise ClaimLost(self.path)

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

    def create(self, segment: Segment, about: Mapping[str, Any]) -> None:
        """Write the record first, so that a folder without one is never a segment."""
        self.path.mkdir(parents=True, exist_ok=True)
        if not (self.path / "segment.json").exists():
            ids = {"parent": segment.parent.id if segment.parent else None}
            ids |= {"expert": segment.expert.id} if segment.expert else {}
            content = {"id": segment.id, **segment.record(), **ids, **about}
            write_json(self.path / "segment.json", content)

    def append(self, name: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Add rows to evals.csv or train.csv; a file keeps the columns it was begun with."""
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
        except OSError:  # a full disk: no half a line stays
            with contextlib.suppress(OSError):
                os.truncate(file, before)
            raise

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
        name = files.checked_name(segment.folder, "segment")
        path = files.check_inside(self.root, self.root / "segments" / name)
        return SegmentFolder(path, self.token)

    def add_experiment(self, content: Mapping[str, Any]) -> None:
        """Remember which runs a command asked for; the same runs again are the same file."""
        folder = files.check_inside(self.root, self.root / "experiments")
        folder.mkdir(parents=True, exist_ok=True)
        name = experiment_name(content)
        if not (folder / f"{name}.json").exists():
            write_json(folder / f"{name}.json", {"schema": SCHEMA, **content})

    def add_source(self, name: str, code: bytes) -> None:
        """Keep the code of a method from outside the package, under the hash that records name."""
        file = self.root / "sources" / f"{name}.py"
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(code)

    def newer_schema(self) -> Path | None:
        """A file written by a later version of cwbench, if there is one."""
        for file in [
            *self.root.glob("experiments/*.json"),
            *self.root.glob("segments/*/segment.json"),
        ]:
            with contextlib.suppress(Damaged, TypeError, OSError):
                if read_json(file).get("schema", 0) > SCHEMA:
                    return file
        return None


@dataclass
class Runs:
    """What `load_runs` returns. `problems` names everything that could not be read as it should."""

    runs: pd.DataFrame  # one row per run of an experiment
    evals: pd.DataFrame  # one row per run, evaluation and position evaluated
    train: pd.DataFrame  # one row per run and evaluation: training statistics
    diagnostics: pd.DataFrame  # one row per run, evaluation, quantity and part of the networks
    segments: pd.DataFrame  # one row per segment: record and status
    problems: list[str] = field(default_factory=list)


RUN_COLUMNS = (
    "run",  # "<sequence>/<id of the last segment>", unique
    "experiment",
    "sequence",
    "method",
    "label",  # method and the options that differ from its defaults
    "setup",  # digest of everything but tasks and seed: runs with equal setup may be averaged
    "protocol",
    "seed",
    "tasks",  # tuple of names
    "segments",  # tuple of ids
    "folders",  # tuple of folder names, "" where nothing is on disk
    "done",  # segments finished
    "state",  # done, running, pending, failed, diverged
    "step",  # environment steps so far, over all segments
    "steps",  # environment steps asked for
)


def load_runs(root: str | Path) -> Runs:
    """Assemble the runs of a results folder, finished or not, from its segments."""
    root = Path(root)
    problems: list[str] = []
    segments = {record["id"]: record for record in read_segments(root, problems)}
    tables = {
        name: {
            key: _segment_table(root, record, name, columns, problems)
            for key, record in segments.items()
        }
        for name, columns in TABLES.items()
    }
    runs: dict[str, dict[str, Any]] = {}
    for experiment in read_experiments(root, problems):
        for run in experiment["runs"]:
            row = _run(run, experiment, segments)
            runs.setdefault(row["run"], row)
    return Runs(
        runs=pd.DataFrame(list(runs.values()), columns=list(RUN_COLUMNS)),
        evals=_assemble(runs.values(), segments, tables["evals"], TABLES["evals"]),
        train=_assemble(runs.values(), segments, tables["train"], TABLES["train"]),
        diagnostics=_assemble(
            runs.values(), segments, tables["diagnostics"], TABLES["diagnostics"]
        ),
        segments=pd.DataFrame(list(segments.values())),
        problems=problems,
    )


def read_segments(root: Path, problems: list[str]) -> Iterator[dict[str, Any]]:
    """Records of the segments on disk, with their folder and status; what is damaged is listed."""
    for file in sorted(root.glob("segments/*/segment.json")):
        with listing(root, problems):
            record = segment_record(root, file)
            yield record | {
                "folder": file.parent.name,
                "status": _listed_status(file, root, problems),
            }


def segment_record(root: Path, file: Path) -> dict[str, Any]:
    files.check_inside(root, file)
    record = checked(read_json(file), SEGMENT_KEYS, file)
    checked(record["schedule"], {"steps_per_task": int}, file)
    return record


def _listed_status(file: Path, root: Path, problems: list[str]) -> dict[str, Any]:
    """A segment's status; `damaged` where it, or the record it belongs to, is not as written."""
    with listing(root, problems):
        status = SegmentFolder(file.parent).intact_status()
        files.check(file, status.get("checksums", {}).get(file.name))
        return status
    return {"state": "damaged", "step": 0}


def experiment_name(record: Mapping[str, Any]) -> str:
    """A hash of what was asked for, so that a changed record does not fit its file's name."""
    return digest({"runs": record["runs"], "name": record["name"]})


def read_experiments(
    root: Path, problems: list[str], name: str = "*.json"
) -> Iterator[dict[str, Any]]:
    """What commands asked for."""
    for file in sorted(root.glob(f"experiments/{name}")):
        with listing(root, problems):
            files.check_inside(root, file)
            experiment = checked(read_json(file), EXPERIMENT_KEYS, file)
            for run in experiment["runs"]:
                _check_run(run, file)
            yield experiment


def _check_run(run: Any, file: Path) -> None:
    checked(run, RUN_KEYS, file)
    for key, kind in (("tasks", str), ("segments", str), ("steps", int)):
        if not run[key] or not all(isinstance(item, kind) for item in run[key]):
            raise Damaged(file, f"{key} is {run[key]!r:.40}")
    if len(run["segments"]) != len(run["steps"]) or len(run["segments"]) > len(run["tasks"]):
        raise Damaged(file, f"{len(run['segments'])} segments for {len(run['tasks'])} tasks")


@contextlib.contextmanager
def listing(root: Path, problems: list[str]) -> Iterator[None]:
    """List what cannot be read inside the block, by the name of its file, and go on after it."""
    try:
        yield
    except Damaged as error:
        where = error.path.relative_to(root) if error.path.is_relative_to(root) else error.path
        problems.append(f"{where}: {error.reason}")
    except (UserError, OSError) as error:
        problems.append(str(error))


def checked(record: Any, keys: Mapping[str, type], where: Path) -> dict[str, Any]:
    """The record, if it holds these keys and no later version wrote it."""
    if not isinstance(record, dict):
        raise Damaged(where, f"expected a record, found {type(record).__name__}")
    if missing := [key for key in keys if key not in record]:
        raise Damaged(where, f"without {', '.join(missing)}")
    if wrong := [key for key, kind in keys.items() if not isinstance(record[key], kind)]:
        raise Damaged(where, f"{wrong[0]} is {record[wrong[0]]!r:.40}")
    if record.get("schema", SCHEMA) > SCHEMA:
        raise UserError(f"{where}: schema {record['schema']} is newer than {SCHEMA}")
    return record


def _run(
    run: Mapping[str, Any], experiment: Mapping[str, Any], segments: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    found = [segments.get(key) for key in run["segments"]]
    status = [record["status"] if record else {"state": "pending"} for record in found]
    states = [entry["state"] for entry in status]
    unfinished = [state for state in states if state != "done"]
    state = unfinished[0] if unfinished else "done"
    return {
        "run": f"{run['sequence']}/{run['segments'][-1]}",
        "experiment": experiment["name"],
        **{key: run[key] for key in ("sequence", "method", "label", "setup", "protocol", "seed")},
        "tasks": tuple(run["tasks"]),
        "segments": tuple(run["segments"]),
        "folders": tuple(record["folder"] if record else "" for record in found),
        "done": states.count("done"),
        "state": state,
        "step": sum(int(entry.get("step", 0)) for entry in status),
        "steps": sum(run["steps"]),
    }


def _header(file: Path) -> list[str]:
    """The names in a CSV's first line; none where there is no file or nothing in it."""
    if not file.exists():
        return []
    with file.open(encoding="utf-8", errors="replace") as stream:
        first = stream.readline().strip()
    return first.split(",") if first else []


Columns = dict[str, NDArray[Any]]


def _segment_table(
    root: Path, record: Mapping[str, Any], name: str, columns: Sequence[str], problems: list[str]
) -> Columns:
    """A segment's evals or train; without rows if the file is not what it was when it was done."""
    folder, status = root / "segments" / record["folder"], record["status"]
    file = folder / f"{name}.csv"
    with listing(root, problems):
        files.check(file, status.get("checksums", {}).get(file.name))
        if status["state"] != "damaged":
            return _table(file, columns, REQUIRED[name], problems)
    return _parse([], columns)


_WHOLE = {"step", "eval_position", "episodes", "updates"}
_TEXTS = {"eval_task", "quantity", "part"}
_NUMBERS = {name for columns in TABLES.values() for name in columns} - _TEXTS


def _table(
    file: Path, columns: Sequence[str], required: Sequence[str], problems: list[str]
) -> Columns:
    """A CSV as columns: NaN where an older file lacks one; a newer one's others are left out.

    Lines that cannot be read are listed as problems, not guessed at.
    """
    if not files.is_file(file):
        return _parse([], columns)
    where = f"{file.parent.name}/{file.name}"
    header, *lines = file.read_text(encoding="utf-8", errors="replace").split("\n")
    names = header.split(",")
    if not set(required) <= set(names) or len(set(names)) < len(names):
        problems.append(f"{where}: unexpected header {header!r}")
        return _parse([], columns)
    try:
        if lines and lines[-1]:
            raise ValueError("the last line has no end")
        found = _parse(lines[:-1], names)
    except ValueError:  # something is wrong: read line by line, to say what and where
        found = _parse(_readable(lines, names, where, problems), names)
    absent = np.full(len(found["step"]), np.nan)
    table = {name: found.get(name, absent) for name in columns}
    key = [name for name in ("step", "eval_position", "quantity", "part") if name in columns]
    places = list(zip(*(table[name] for name in key), strict=True))
    if repeated := len(places) - len(set(places)):
        problems.append(f"{where}: {repeated} repeated rows; the first of each is used")
        first = {place: row for row, place in reversed(list(enumerate(places)))}
        table = {name: cells[sorted(first.values())] for name, cells in table.items()}
    return table


def _parse(lines: Sequence[str], columns: Sequence[str]) -> Columns:
    rows = [line.split(",") for line in lines]
    cells = zip(*rows, strict=True) if rows else [()] * len(columns)
    kinds: dict[str, Any] = {name: int if name in _WHOLE else float for name in columns}
    parsed = {}
    for name, column in zip(columns, cells, strict=True):
        if name not in _NUMBERS:
            parsed[name] = np.array(column, object)
        elif name == "successes":  # a sum of scores: whole where a score is a success
            numbers = [float(cell) for cell in column]
            parsed[name] = np.array(numbers, int if all(map(float.is_integer, numbers)) else float)
        else:
            parsed[name] = np.array(list(map(kinds[name], column)), kinds[name])
    return parsed


def _readable(
    lines: Sequence[str], columns: Sequence[str], where: str, problems: list[str]
) -> list[str]:
    kept = []
    for number, line in enumerate(lines, start=2):
        if not line:
            continue
        try:
            if line.count(",") + 1 != len(columns) or number > len(lines):
                raise ValueError(f"truncated line {line!r}")
            _parse([line], columns)
            kept.append(line)
        except ValueError as error:
            problems.append(f"{where} line {number}: {error}")
    return kept


def _assemble(
    runs: Iterable[Mapping[str, Any]],
    segments: Mapping[str, Mapping[str, Any]],
    tables: Mapping[str, Columns],
    columns: Sequence[str],
) -> pd.DataFrame:
    """Rows of every run, with `position` (the task being trained) and `step` over the whole run."""
    parts: dict[str, list[NDArray[Any]]] = {
        name: [np.array([], object)]
        for name in (*columns, "run", "position", "segment", "segment_step")
    }
    for run in runs:
        offset = 0
        for position, key in enumerate(run["segments"]):
            if key not in segments:
                break
            table = tables[key]
            about = {"run": run["run"], "position": position, "segment": key}
            for name, cells in {**table, "step": table["step"] + offset}.items():
                parts[name].append(cells)
            for name, value in about.items():
                kind = object if isinstance(value, str) else int
                parts[name].append(np.full(len(table["step"]), value, kind))
            parts["segment_step"].append(table["step"])
            offset += _steps(segments[key])
    return pd.DataFrame({name: np.concatenate(part[1:] or part) for name, part in parts.items()})


def _steps(record: Mapping[str, Any]) -> int:
    tasks = len(record["tasks"]) if record["joint"] else 1
    return int(record["schedule"]["steps_per_task"]) * tasks
