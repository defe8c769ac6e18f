"""The runs of a results folder as tables, assembled from the records and tables of its segments."""

import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cwbench.spec.statistics import EVAL_COLUMNS, MORE_SUCCESSES, TRAIN_COLUMNS, success_column
from cwbench.spec.text import counted
from cwbench.store import claims, files
from cwbench.store.records import created, listing
from cwbench.store.results import (
    DIAGNOSTICS_COLUMNS,
    SegmentFolder,
    read_experiments,
    read_segments,
    segment_folders,
)
from cwbench.store.status import shown_state

# Columns that a file of any version has; others may be missing from older files.
REQUIRED = {
    "evals": EVAL_COLUMNS,
    "train": ("step", "updates"),
    "diagnostics": DIAGNOSTICS_COLUMNS,
}
TABLE_COLUMNS = {
    "evals": (*EVAL_COLUMNS, *MORE_SUCCESSES),
    "train": TRAIN_COLUMNS,
    "diagnostics": DIAGNOSTICS_COLUMNS,
}


@dataclass
class Runs:
    """What `load_runs` returns. `problems` names everything that could not be read as it should."""

    runs: pd.DataFrame  # one row per run of an experiment
    evals: pd.DataFrame  # one row per run, evaluation and position evaluated
    train: pd.DataFrame  # one row per run and evaluation: training statistics
    # One row per run, evaluation, quantity and part of the networks; texts are categories, for
    # there are many rows.
    diagnostics: pd.DataFrame
    segments: pd.DataFrame  # one row per segment: record and status
    problems: list[str] = field(default_factory=list)

    @property
    def solved(self) -> "pd.Series[float]":
        """Episodes of each row of `evals` that are solved, as its run's environment counts."""
        envs = {row["id"]: row.get("env") or {} for row in records_of(self.segments)}
        columns = {key: success_column(env.get("success")) for key, env in envs.items()}
        counted_by = self.evals["segment"].map(columns)
        found = self.evals["successes"].astype(float)
        for column in set(columns.values()) - {"successes"}:
            found = found.mask(counted_by == column, self.evals[column])
        return found


RUN_COLUMNS = (
    "run",  # "<sequence>/<id of the last segment>", unique
    "experiment",
    "sequence",
    "method",
    "label",  # method and the options that differ from its defaults
    "setup",  # digest of everything but tasks and seed: runs with equal setup may be averaged
    "protocol",  # the name it was asked for under first
    "protocols",  # name -> label: all it was asked for under
    "seed",
    "tasks",  # tuple of names
    "segments",  # tuple of ids
    "folders",  # tuple of folder names, "" where nothing is on disk
    "done",  # segments finished
    "state",  # one of SHOWN_STATES: that of its first segment that is not done
    "step",  # environment steps so far, over all segments
    "steps",  # environment steps asked for
)


def load_runs(
    root: str | Path,
    tables: Collection[str] = tuple(TABLE_COLUMNS),
    only: Collection[str] | None = None,
) -> Runs:
    """Assemble the runs of a results folder, finished or not, from its segments.

    Of all runs, or `only` of these; other tables than these stay empty.
    """
    root = Path(root)
    problems: list[str] = []
    unrecorded: list[str] = []
    experiments = sorted(read_experiments(root, unrecorded), key=created)
    segments, states = dict[str, dict[str, Any]](), dict[str, str]()
    for record in read_segments(root, problems, _folders(root, experiments, only)):
        segments[record["id"]] = record
        states[record["id"]] = _state(root, record)  # at once: its process may end meanwhile
    rows = _rows(experiments, segments, states)
    kept = [row for name, row in rows.items() if only is None or name in only]
    found = {
        name: _assemble(kept, segments, _read(root, segments, name, problems), name)
        for name in tables
    }
    empty = {name: _assemble([], {}, {}, name) for name in TABLE_COLUMNS.keys() - found}
    return Runs(
        runs=pd.DataFrame(kept, columns=list(RUN_COLUMNS)),
        **found,
        **empty,
        segments=pd.DataFrame(list(segments.values())),
        problems=problems + unrecorded,
    )


def _folders(
    root: Path, experiments: Iterable[Mapping[str, Any]], only: Collection[str] | None
) -> list[str] | None:
    """Names of the folders of some runs; None, meaning every folder, for all."""
    if only is None:
        return None
    runs = (run for experiment in experiments for run in experiment["runs"])
    ids = {key for run in runs if _name(run) in only for key in run["segments"]}
    return [path.name for path in segment_folders(root) if path.name[-12:] in ids]


def _rows(
    experiments: Iterable[Mapping[str, Any]],
    segments: Mapping[str, Mapping[str, Any]],
    states: Mapping[str, str],
) -> dict[str, dict[str, Any]]:
    """The rows of `Runs.runs` by name, from records of experiments, the oldest first."""
    runs: dict[str, dict[str, Any]] = {}
    # Of a setup under a protocol, the newest command's label: names may have changed.
    labels: dict[tuple[str, str], str] = {}
    for experiment in experiments:
        for run in experiment["runs"]:
            row = _run(run, experiment, segments, states)
            labels[row["setup"], row["protocol"]] = row["label"]
            runs.setdefault(row["run"], row)["protocols"] |= row["protocols"]
    for row in runs.values():
        row["protocols"] = {name: labels[row["setup"], name] for name in row["protocols"]}
        row["label"] = row["protocols"][row["protocol"]]
    return runs


def together(loaded: Sequence[Runs]) -> Runs:
    """Several folders as one study; of a run that is in several, the first counts.

    Unlike a merge this allows a segment to be in two folders with different evaluations, as when
    two GPUs trained it: every run keeps those of its own folder.
    """
    frames: dict[str, list[pd.DataFrame]] = {name: [] for name in _FRAMES}
    known: set[str] = set()
    problems = [problem for part in loaded for problem in part.problems]
    for part in loaded:
        again = known & set(part.runs["run"])
        if differing := _differing(again, part.evals, frames["evals"]):
            which = f"{counted(differing, 'run is', 'runs are')} in several folders"
            problems.append(f"{which}, with different evaluations; those of the first are used")
        for name, parts in frames.items():
            frame = getattr(part, name)
            parts.append(frame[~frame["run"].isin(known)])
        known.update(part.runs["run"])
    segments = _joined([part.segments for part in loaded])
    joined = {name: _joined(parts) for name, parts in frames.items()}
    asked = joined["runs"]["run"].map(_protocols(loaded))
    joined["runs"] = joined["runs"].assign(protocols=asked)
    return Runs(
        **joined,
        segments=segments if segments.empty else segments.drop_duplicates("id", ignore_index=True),
        problems=problems,
    )


def records_of(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows; None where a record has None or lacks a key (pandas may have NaN, which is true)."""
    return [
        {
            str(key): None if isinstance(value, float) and np.isnan(value) else value
            for key, value in row.items()
        }
        for row in table.to_dict("records")
    ]


def _protocols(loaded: Sequence[Runs]) -> dict[str, dict[str, str]]:
    """Run -> the protocols it was asked for under, in any folder, and its label there."""
    found: dict[str, dict[str, str]] = {}
    for part in loaded:
        for run, labels in zip(part.runs["run"], part.runs["protocols"], strict=True):
            for name, label in labels.items():
                found.setdefault(run, {}).setdefault(name, label)
    return found


def _differing(runs: set[str], found: pd.DataFrame, earlier: Sequence[pd.DataFrame]) -> int:
    """How many of these runs have other evaluations than in earlier folders."""
    if not runs:
        return 0
    one, other = (_by_run(frame[frame["run"].isin(runs)]) for frame in (found, _joined(earlier)))
    return sum(not one[run].equals(other[run]) for run in one.keys() & other.keys())


def _by_run(frame: pd.DataFrame) -> dict[Any, pd.DataFrame]:
    return {run: rows.reset_index(drop=True) for run, rows in frame.groupby("run")}


def _joined(frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Without empty ones, whose columns have no types."""
    full = [frame for frame in frames if not frame.empty]
    return pd.concat(full, ignore_index=True) if len(full) > 1 else [*full, frames[0]][0]


_FRAMES = ("runs", "evals", "train", "diagnostics")  # keyed by run


def _name(run: Mapping[str, Any]) -> str:
    return f"{run['sequence']}/{run['segments'][-1]}"


def _state(root: Path, record: Mapping[str, Any]) -> str:
    status = record["status"]
    unfinished = status["state"] in ("pending", "running")
    folder = SegmentFolder(root / "segments" / record["folder"])
    return shown_state(status, claims.owner(folder) if unfinished else "")


def _run(
    run: Mapping[str, Any],
    experiment: Mapping[str, Any],
    segments: Mapping[str, Mapping[str, Any]],
    states: Mapping[str, str],
) -> dict[str, Any]:
    found = [segments.get(key) for key in run["segments"]]
    own = [states.get(key, "waiting") for key in run["segments"]]
    return {
        "run": _name(run),
        "experiment": experiment["name"],
        **{key: run[key] for key in ("sequence", "method", "label", "setup", "protocol", "seed")},
        "protocols": {run["protocol"]: run["label"]},
        "tasks": tuple(run["tasks"]),
        "segments": tuple(run["segments"]),
        "folders": tuple(record["folder"] if record else "" for record in found),
        "done": own.count("done"),
        "state": next((state for state in own if state != "done"), "done"),
        "step": sum(int(record["status"].get("step", 0)) for record in found if record),
        "steps": sum(run["steps"]),
    }


Columns = dict[str, NDArray[Any]]


def _read(
    root: Path, segments: Mapping[str, Mapping[str, Any]], name: str, problems: list[str]
) -> dict[str, Columns]:
    """One table of every segment, by id."""
    return {key: _segment_table(root, record, name, problems) for key, record in segments.items()}


def _segment_table(
    root: Path, record: Mapping[str, Any], name: str, problems: list[str]
) -> Columns:
    """One of a segment's tables; without rows if the file is not what it was when it was done."""
    folder, status = root / "segments" / record["folder"], record["status"]
    file, columns = folder / f"{name}.csv", TABLE_COLUMNS[name]
    with listing(root, problems, file):
        files.check(file, status.get("checksums", {}).get(file.name))
        if status["state"] != "damaged":
            return _table(file, columns, REQUIRED[name], problems)
    return _parse([], columns)


DIAGNOSTICS_TEXTS = ("quantity", "part", "run", "segment")
LISTED = 5  # lines of a file that cannot be read, each with the reason
_WHOLE = {"step", "eval_position", "episodes", "updates"}
_TEXTS = {"eval_task", "quantity", "part"}
_NUMBERS = {name for columns in TABLE_COLUMNS.values() for name in columns} - _TEXTS


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
    except (
        ValueError,
        OverflowError,
    ):  # something is wrong: read line by line, to say what and where
        found = _parse(_readable(lines, names, where, problems), names)
    absent = np.full(len(found["step"]), np.nan)
    table = {name: found.get(name, absent) for name in columns}
    key = [name for name in ("step", "eval_position", "quantity", "part") if name in columns]
    keys = list(zip(*(table[name] for name in key), strict=True))
    if repeated := len(keys) - len(set(keys)):
        problems.append(f"{where}: {counted(repeated, 'repeated row')}; the first of each is used")
        first = {value: row for row, value in reversed(list(enumerate(keys)))}
        table = {name: cells[sorted(first.values())] for name, cells in table.items()}
    return table


def _parse(lines: Sequence[str], columns: Sequence[str]) -> Columns:
    rows = [line.split(",") for line in lines]
    cells = zip(*rows, strict=True) if rows else [()] * len(columns)
    kinds: dict[str, Any] = {name: int if name in _WHOLE else float for name in columns}
    parsed = {}
    for name, column in zip(columns, cells, strict=True):
        if name not in _NUMBERS:
            parsed[name] = np.array([sys.intern(cell) for cell in column], object)
        elif name == "successes":  # a sum of scores: whole where a score is a success
            numbers = [float(cell) for cell in column]
            parsed[name] = np.array(numbers, int if all(map(float.is_integer, numbers)) else float)
        else:
            parsed[name] = np.array(list(map(kinds[name], column)), kinds[name])
    return parsed


def _readable(
    lines: Sequence[str], columns: Sequence[str], where: str, problems: list[str]
) -> list[str]:
    kept, errors = [], []
    for number, line in enumerate(lines, start=2):
        if not line:
            continue
        try:
            if line.count(",") + 1 != len(columns) or number > len(lines):
                raise ValueError(f"truncated line {line!r}")
            _parse([line], columns)
            kept.append(line)
        except (ValueError, OverflowError) as error:
            errors.append(f"{where} line {number}: {error}")
    problems += errors[:LISTED]
    if more := len(errors[LISTED:]):
        problems.append(f"{where}: {counted(more, 'more line')} that cannot be read")
    return kept


def _assemble(
    runs: Iterable[Mapping[str, Any]],
    segments: Mapping[str, Mapping[str, Any]],
    tables: Mapping[str, Columns],
    name: str,
) -> pd.DataFrame:
    """Rows of every run, with `position` (the task being trained) and `step` over the whole run."""
    parts: dict[str, list[NDArray[Any]]] = {
        column: [np.array([], object)]
        for column in (*TABLE_COLUMNS[name], "run", "position", "segment", "segment_step")
    }
    for run in runs:
        offset = 0
        for position, key in enumerate(run["segments"]):
            if key not in segments:
                break
            table = tables[key]
            labels = {"run": run["run"], "position": position, "segment": key}
            for column, cells in {**table, "step": table["step"] + offset}.items():
                parts[column].append(cells)
            for column, value in labels.items():
                kind = object if isinstance(value, str) else int
                parts[column].append(np.full(len(table["step"]), value, kind))
            parts["segment_step"].append(table["step"])
            offset += _steps(segments[key])
    joined: dict[str, Any] = {
        column: np.concatenate(part[1:] or part) for column, part in parts.items()
    }
    if name == "diagnostics":
        joined |= {column: pd.Categorical(joined[column]) for column in DIAGNOSTICS_TEXTS}
    return pd.DataFrame(joined)


def _steps(record: Mapping[str, Any]) -> int:
    tasks = len(record["tasks"]) if record["joint"] else 1
    return int(record["schedule"]["steps_per_task"]) * tasks
