"""From the tables of a results folder to a study: runs grouped, success rates on their grid."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase as fnmatch
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cwbench.reports.analysis import names
from cwbench.reports.analysis.definitions import without_definitions
from cwbench.reports.analysis.study import (
    DEFAULTS,
    SHIPPED,
    Array,
    Count,
    Curve,
    Group,
    Options,
    Protocol,
    Run,
    Study,
)
from cwbench.spec.errors import UserError
from cwbench.spec.segment import digest
from cwbench.spec.statistics import SUCCESS_COLUMNS
from cwbench.store import marks
from cwbench.store.runs import Runs, records_of

Rows = NDArray[np.intp]  # indices of rows in a table
LOGGED = tuple(names.STATISTICS)  # statistics of training
# `position` and `segment_step` say which row of which segment it is.
PLACES = ("step", "position", "segment_step", "eval_position")
COUNTS = (*PLACES, "episodes", *SUCCESS_COLUMNS.values())


@dataclass(frozen=True)
class Columns:
    """Columns of a results folder's tables, by run."""

    evals: Mapping[str, Mapping[str, Count]]
    train: Mapping[str, Mapping[str, Count]]
    logged: Mapping[str, Mapping[str, Array]]  # statistics of training

    @classmethod
    def of(cls, loaded: Runs) -> "Columns":
        trained = rows_of(loaded.train)
        return cls(
            _by_run(loaded.evals, rows_of(loaded.evals)),
            _by_run(loaded.train, trained),
            _by_run(loaded.train, trained, ("step", *LOGGED), np.float64),
        )


def arrange(loaded: Runs, options: Options = DEFAULTS) -> Study:
    """Group the loaded runs by protocol, sequence and setting, and fill their arrays."""
    segments = {str(row["id"]): row for row in records_of(loaded.segments)}
    problems, notes = list(loaded.problems), list[str]()
    rows = without_definitions(records_of(loaded.runs), segments, notes)
    rows = _told_apart(_by_protocol(rows), notes)
    protocols, columns = _protocols(rows, segments), Columns.of(loaded)
    members: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        members[row["sequence"], row["setup"]].append(row)
    groups = [
        _group(runs, protocols[runs[0]["setup"]], columns, problems) for runs in members.values()
    ]
    edited = marks.sources(rows, segments)
    _noted(edited, notes)
    groups = [
        replace(group, version=marks.mark(edited.get(group.method, {}).get(group.setup, "")))
        for group in groups
    ]
    if options.success is None:
        groups = [_as_protocol_counts(group) for group in groups]
    groups.sort(key=_order)
    study = Study(groups, segments, [*problems, *notes], notes, options)
    if options.success not in (None, SHIPPED):
        study = _chosen(study, options.success)
    study = _selected(study)
    _check_window(study)
    return study


def _selected(study: Study) -> Study:
    """Only the protocols, sequences and methods that the reader asked for."""
    wanted, groups = study.options, study.groups
    under = {group.key: [group.protocol.title, study.slug(group.protocol)] for group in groups}
    on = {group.key: [group.sequence] for group in groups}
    of = {group.key: _labels(group) for group in groups}
    asked = (
        (wanted.methods, of, "of", "of method"),
        (wanted.sequences, on, "on", "on sequence"),
        (wanted.protocols, under, "under", "under protocol"),
    )
    for patterns, found, _, what in asked:
        for pattern in patterns:
            if not any(_matches(names, [pattern]) for names in found.values()):
                known = "; ".join(dict.fromkeys(names[:2][-1] for names in found.values()))
                raise UserError(f"no run {what} {pattern!r}", f"these results have {known}")
    shown = [
        group
        for group in groups
        if all(_matches(found[group.key], patterns) for patterns, found, _, _ in asked)
    ]
    if groups and not shown:
        parts = [f"{word} {', '.join(patterns)}" for patterns, _, word, _ in asked if patterns]
        raise UserError(f"no run {' '.join(parts)}")
    return replace(study, groups=shown, others=[group for group in groups if group not in shown])


def _labels(group: Group) -> list[str]:
    """The label, and the label with marks as `cwbench status --runs` has them."""
    version = f"{group.label} ({group.version})" if group.version else group.label
    setup = f" ({marks.mark(group.setup)})"
    return [group.label, version, group.label + setup, version + setup]


def _matches(names: Sequence[str], patterns: Sequence[str]) -> bool:
    """Whether a name fits one of them; `mine` also names the versions `mine+19ed` of a sequence."""
    both = [option for pattern in patterns for option in (pattern, f"{pattern}+*")]
    pairs = [(_plain(name), _plain(option)) for name in names for option in both]
    return not patterns or any(fnmatch(name, option) for name, option in pairs)


def _plain(name: str) -> str:
    return name.lower().replace("_", "-")


def _check_window(study: Study) -> None:
    window, chosen = study.options.window, study.options.protocol
    for protocol in study.protocols:
        looked_at = protocol.schedule and chosen in (None, protocol.key)
        if window and looked_at and window > protocol.evaluations:
            raise UserError(
                f"a window of {window} evaluations is longer than a task of protocol "
                f"{protocol.title!r}, which has {protocol.evaluations}"
            )


def _as_protocol_counts(group: Group) -> Group:
    success = group.protocol.success
    return group if success == SHIPPED else group.counted(success)


def _chosen(study: Study, success: str) -> Study:
    """The study counted as the reader chose; setups without that count are problems."""
    lacking = [group for group in study.groups if not group.has_count(success)]
    if lacking and not any(success in group.counts for group in study.groups):
        raise UserError(
            f"--success {success}: evaluations of these runs were not counted that way",
            f"--success {SHIPPED} is what every run has",
        )
    study.problems += [
        f"{group.key}: evaluations that were not counted as {success} are left out"
        for group in lacking
    ]
    return study.counted(success)


def _by_protocol(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """A row for each protocol name that a run was asked for under.

    Equal settings under several names are not averaged: they become several setups.
    """
    names: dict[str, set[str]] = defaultdict(set)  # of each setup
    for row in rows:
        names[row["setup"]].update(row["protocols"])
    return [
        row | {"protocol": name, "label": label, "setup": setup if one else setup + digest(name)}
        for row in rows
        for setup, one in [(row["setup"], len(names[row["setup"]]) == 1)]
        for name, label in row["protocols"].items()
    ]


def _told_apart(rows: list[dict[str, Any]], notes: list[str]) -> list[dict[str, Any]]:
    """Sequences of one name with different tasks get two names."""
    mixed = marks.sequence_names(rows)
    notes += [
        f"runs on {sequence} have different tasks, so they are not averaged: "
        + "; ".join(f"{name} is {', '.join(tasks)}" for tasks, name in found.items())
        for sequence, found in mixed.items()
    ]
    return [
        row | {"sequence": mixed[row["sequence"]][row["tasks"]]}
        if row["sequence"] in mixed
        else row
        for row in rows
    ]


def _noted(edited: Mapping[str, Mapping[str, str]], notes: list[str]) -> None:
    """Add what titles of methods with several versions mean."""
    for method, found in edited.items():
        files = (f"sources/{one}.py" if one else "built in" for one in sorted({*found.values()}))
        notes.append(
            f"{names.method_title(method)} was edited between runs, so they are not averaged: "
            f"titles name the code, {', '.join(files)}"
        )


def _order(group: Group) -> tuple[Any, ...]:
    families = list(names.FAMILIES)
    return (
        group.protocol.name,
        group.protocol.key,
        families.index(group.family),
        names.natural(group.sequence),
        names.method_order(group.method),
        group.label != group.method,
        names.natural(group.label),
    )


def _protocols(
    rows: Iterable[Mapping[str, Any]], segments: Mapping[str, Mapping[str, Any]]
) -> dict[str, Protocol]:
    """Setup -> protocol. A setup without any segment on disk joins the others of its name."""
    found: dict[str, Protocol] = {}
    rows = list(rows)
    for row in rows:
        known = next((segments[key] for key in row["segments"] if key in segments), None)
        if known:
            env, own = row.get("env", known["env"]), row.get("definitions", {})
            found[row["setup"]] = Protocol(row["protocol"], env, known["schedule"], own)
    for row in rows:
        if row["setup"] not in found:
            same = {p.key: p for p in found.values() if p.name == row["protocol"]}
            alone = next(iter(same.values())) if len(same) == 1 else None
            found[row["setup"]] = alone or Protocol(row["protocol"], {}, {})
    return found


def rows_of(table: pd.DataFrame) -> dict[str, Rows]:
    """Run -> its rows."""
    indices_of_runs = table.groupby("run", sort=False).indices
    return {str(run): np.asarray(rows) for run, rows in indices_of_runs.items()}


def _by_run(
    table: pd.DataFrame,
    rows_of_runs: Mapping[str, Rows],
    columns_of: Sequence[str] = COUNTS,
    kind: type[np.generic] = np.int64,
) -> dict[str, dict[str, Any]]:
    """Run -> its columns, of counts unless others are named."""
    names = [name for name in columns_of if name in table.columns]
    # Sums of scores, whole where a score is a success; NaN where a file has no such count.
    kinds = dict.fromkeys(SUCCESS_COLUMNS.values(), np.float64)
    columns = {name: table[name].to_numpy(kinds.get(name, kind)) for name in names}
    return {
        run: {name: column[rows] for name, column in columns.items()}
        for run, rows in rows_of_runs.items()
    }


def _group(
    rows: list[dict[str, Any]], protocol: Protocol, columns: Columns, problems: list[str]
) -> Group:
    """Runs of one sequence and setting."""
    rows = sorted(rows, key=lambda row: int(row["seed"]))
    first, runs = rows[0], [row["run"] for row in rows]
    count = len(first["tasks"])
    shape = (len(rows), count, protocol.evaluations, count)
    counts = {name: np.full(shape, np.nan) for name in SUCCESS_COLUMNS}
    training = np.full(shape[:3], np.nan)
    lacking = set()
    for index, run in enumerate(runs):
        folders = rows[index]["folders"]
        if run in columns.evals:
            evals = columns.evals[run]
            for name, column in SUCCESS_COLUMNS.items():
                if _fill(counts[name][index], evals, protocol, folders, problems, column):
                    lacking.add(name)
        if run in columns.train:
            _fill(training[index], columns.train[run], protocol, folders, problems)
    plain: dict[str, Any] = {
        key: str(first[key]) for key in ("sequence", "method", "label", "setup")
    }
    return Group(
        **plain,
        tasks=first["tasks"],
        protocol=protocol,
        runs=tuple(map(_run, rows)),
        success=counts[SHIPPED],
        counts={name: rates for name, rates in counts.items() if not np.isnan(rates).all()},
        lacking=frozenset(lacking),
        training=training,
        logged=_logged(runs, columns.logged, protocol, count),
    )


def _run(row: Mapping[str, Any]) -> Run:
    return Run(
        name=row["run"],
        seed=int(row["seed"]),
        state=row["state"],
        step=int(row["step"]),
        steps=int(row["steps"]),
        segments=row["segments"],
        folders=row["folders"],
    )


def _logged(
    runs: Sequence[str], logged: Mapping[str, Mapping[str, Array]], protocol: Protocol, tasks: int
) -> dict[str, Array]:
    """Statistics of training on the grid of evaluations, [R, N, E]; NaN where there are none."""

    def curve(run: str, name: str) -> Curve | None:
        columns = logged.get(run, {})
        return (columns["step"].astype(np.int64), columns[name]) if name in columns else None

    return {
        name: np.array([protocol.on_grid(curve(run, name), tasks) for run in runs])
        for name in LOGGED
    }


def _fill(
    target: Array,
    rows: Mapping[str, Count],
    protocol: Protocol,
    folders: Sequence[str],
    problems: list[str],
    column: str = "successes",
) -> bool:
    """Write success rates into [N, E, N] or [N, E]; rows that cannot be right become problems.

    Whether some evaluations were not counted in this way, which is no problem.
    """
    step, episodes, successes = rows["step"], rows["episodes"], rows[column]
    position, evaluation = protocol.evaluation(step)
    cells: tuple[Count, ...] = (position, evaluation)
    misplaced = (evaluation < 0) | (position >= len(target)) | (episodes < 0)
    if target.ndim == 3:
        tested = rows["eval_position"]
        misplaced |= (tested >= len(target)) | (tested < 0) | (episodes == 0)
        cells = (position, evaluation, tested)
    wrong = misplaced | ~((successes >= 0) & (successes <= episodes))  # NaN is wrong, too
    use = ~wrong & (episodes > 0)
    target[tuple(axis[use] for axis in cells)] = successes[use] / episodes[use]
    listed, uncounted = wrong, np.zeros_like(wrong)
    if column != "successes":  # whose misplaced rows are listed already
        uncounted = _uncounted(rows, column) & ~misplaced
        listed = wrong & ~misplaced & ~uncounted
    file = "evals.csv" if target.ndim == 3 else "train.csv"
    problems += _impossible(rows, listed, [f"{folder}/{file}" for folder in folders], column)
    return bool(uncounted.any())


def _uncounted(rows: Mapping[str, Count], column: str) -> NDArray[np.bool_]:
    """Where a segment has no such count of a task: its file is older, or the task has no such test.

    All of that task's numbers in the file are NaN then; a single NaN is a wrong number.
    """
    missing = np.isnan(rows[column])
    if missing.all() or not missing.any():
        return missing
    places = list(zip(rows["position"].tolist(), rows["eval_position"].tolist(), strict=True))
    known = {place for place, nan in zip(places, missing, strict=True) if not nan}
    return np.array([place not in known for place in places])


def _impossible(
    rows: Mapping[str, Count], wrong: NDArray[np.bool_], files: Sequence[str], column: str
) -> Iterator[str]:
    """The first wrong rows of each segment's file, and how many more it has."""
    what = "successes" if column == "successes" else f"successes ({column})"
    for position in np.unique(rows["position"][wrong]):
        found = np.flatnonzero(wrong & (rows["position"] == position))
        for bad in found[:3]:
            yield (
                f"{files[position]}: {rows[column][bad]:g} {what} in {rows['episodes'][bad]} "
                f"episodes at step {rows['segment_step'][bad]} cannot be right; not used"
            )
        if len(found) > 3:
            yield f"{files[position]}: {len(found) - 3} more rows like these; not used"
