"""The runs of a results folder for Python users: a list of runs, and tidy tables."""

from collections.abc import Callable, Collection, Iterator, Mapping
from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any, overload

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cwbench.experiment.results_folder import folder_named
from cwbench.spec.errors import UserError
from cwbench.spec.options import members
from cwbench.spec.protocol import protocol_title
from cwbench.spec.text import counted
from cwbench.store import runs as stored
from cwbench.store.results import SegmentFolder

KEYS = ("run", "sequence", "method", "label", "setup", "protocol", "seed")


@dataclass(frozen=True)
class Run:
    """One seed of one method on one sequence, finished or not."""

    run: str  # "<sequence>/<id of the last segment>", unique in a results folder
    sequence: str
    method: str
    label: str  # the method and the options that differ from its defaults
    setup: str  # runs with equal setup differ only in sequence and seed
    protocol: str
    seed: int
    tasks: tuple[str, ...]
    segments: tuple[str, ...]  # ids, one per task or one for all
    folders: tuple[str, ...]  # of the segments, "" where nothing is on disk
    done: int  # segments finished
    state: str  # done, running, waiting, stopped, failed, diverged or damaged
    step: int  # environment steps so far
    steps: int  # environment steps in all
    results: Path = field(repr=False)
    # Classes of methods handed over as objects, by the name they are recorded under; a tuple where
    # there may be several versions of one.
    methods: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    # Trained by this process: code that its records name has run already.
    trusted: bool = field(default=False, repr=False, compare=False)

    @property
    def joint(self) -> bool:
        """Whether one segment trained all tasks."""
        return len(self.segments) < len(self.tasks)

    @property
    def learned(self) -> int:
        """Segments up to the last that is done or has weights: a policy needs no tables."""
        ends = (SegmentFolder(self.segment_folder(k)).end for k in range(len(self.segments)))
        found = [k + 1 for k, end in enumerate(ends) if self.folders[k] and end.exists()]
        return max([self.done, *found])

    def segment_folder(self, position: int) -> Path:
        return self.results / "segments" / self.folders[position]


class Runs(SequenceOf[Run]):
    """Runs of a results folder, in the order in which they were requested.

    `runs[0]`, `len(runs)` and iteration give `Run`s; `evaluations`, `training`, `diagnostics`,
    `metrics` and `summary` are pandas tables; `problems` names everything on disk that could not
    be read.
    """

    def __init__(self, runs: Collection[Run], tables: stored.Runs) -> None:
        self._runs, self._tables = list(runs), tables
        self.problems = list(tables.problems)

    def __len__(self) -> int:
        return len(self._runs)

    @overload
    def __getitem__(self, index: int) -> Run: ...
    @overload
    def __getitem__(self, index: slice) -> "Runs": ...
    def __getitem__(self, index: int | slice) -> "Run | Runs":
        if isinstance(index, slice):
            return Runs(self._runs[index], self._tables)
        return self._runs[index]

    def __iter__(self) -> Iterator[Run]:
        return iter(self._runs)

    def __repr__(self) -> str:
        if not self._runs:
            return "no runs"
        columns = ["sequence", "label", "protocol", "seed", "state", "step", "steps"]
        return f"{counted(len(self), 'run')}\n{self.summary[columns].to_string(index=False)}"

    def _repr_html_(self) -> str:
        return str(self.summary.to_html(index=False))

    def filter(self, condition: Callable[[Run], bool] | None = None, **values: Any) -> "Runs":
        """The runs for which `condition` holds and whose fields have these values.

        Several values, such as a list or an array, stand for any of them:
        `runs.filter(method="recall", seed=range(3))`. `tasks`, `segments` and `folders` are
        compared as a whole.
        """
        if unknown := set(values) - {one.name for one in fields(Run)}:
            known = ", ".join(one.name for one in fields(Run))
            raise UserError(f"runs have no field {min(unknown)!r}; they have {known}")
        wanted = {name: _wanted(name, value) for name, value in values.items()}
        kept = [run for run in self if all(_matches(run, *item) for item in wanted.items())]
        return Runs([run for run in kept if condition is None or condition(run)], self._tables)

    @cached_property
    def summary(self) -> pd.DataFrame:
        """One row per run."""
        names = [*KEYS, "tasks", "done", "state", "step", "steps"]
        return pd.DataFrame([[getattr(run, name) for name in names] for run in self], columns=names)

    @cached_property
    def evaluations(self) -> pd.DataFrame:
        """One row per run, evaluation and task evaluated.

        `step` counts over the whole run. `position` and `task` are what was evaluated,
        `training_position` and `training_task` what was being trained. `success_rate` counts as
        the run's own protocol does.
        """
        names = {"position": "training_position", "eval_position": "position", "eval_task": "task"}
        rates = self._tables.solved / self._tables.evals["episodes"]
        evals = self._tables.evals.assign(success_rate=rates).rename(columns=names)
        table = self._keyed(evals, "training_position")
        table.insert(len(KEYS) + 2, "training_task", self._trained(table, "training_position"))
        successes = table.columns.get_loc("successes")
        assert isinstance(successes, int)
        table.insert(successes + 1, "success_rate", table.pop("success_rate"))
        return table

    @cached_property
    def training(self) -> pd.DataFrame:
        """One row per run and evaluation: statistics of training since the one before.

        `seconds` is the time since the segment began.
        """
        table = self._keyed(self._tables.train, "position")
        table.insert(len(KEYS) + 2, "task", self._trained(table, "position"))
        return table

    @cached_property
    def diagnostics(self) -> pd.DataFrame:
        """One row per run, evaluation, quantity and part of the networks; see docs/reports.md.

        `position` and `task` are what was being trained. Empty without `--diagnostics`.
        """
        texts = dict.fromkeys(stored.DIAGNOSTICS_TEXTS, str)
        table = self._keyed(self._tables.diagnostics.astype(texts), "position")
        table.insert(len(KEYS) + 2, "task", self._trained(table, "position"))
        return table

    @cached_property
    def metrics(self) -> pd.DataFrame:
        """One row per run that has ended: average performance, forgetting, ...

        See docs/reports.md for their definitions; NaN where a metric is not defined.
        """
        from cwbench.reports.analysis.scores import run_metrics

        table = run_metrics(self._tables)
        return self.summary[list(KEYS)].merge(table, on="run", how="inner")

    @cached_property
    def end_values(self) -> dict[str, NDArray[np.float64]]:
        """Run that has ended -> success on each task at its end, [tasks], as reports have it:
        counted as its protocol counts, mean over the last evaluations; NaN where these lack."""
        from cwbench.reports.analysis.scores import run_end_values

        return run_end_values(self._tables)

    @cached_property
    def shown_names(self) -> dict[str, tuple[str, str]]:
        """Run -> names of its sequence and setting, told apart as reports do."""
        from cwbench.store.marks import shown_names

        return shown_names(self._tables)

    def _keyed(self, table: pd.DataFrame, position: str) -> pd.DataFrame:
        """The rows of these runs, with the columns that say which run it is in front."""
        merged = self.summary[list(KEYS)].merge(table, on="run", how="inner")
        front = [*KEYS, "step", position]
        last = ["segment", "segment_step"]
        middle = [name for name in merged.columns if name not in (*front, *last)]
        return merged[[*front, *middle, *last]]

    def _trained(self, table: pd.DataFrame, position: str) -> list[str]:
        """The task that was trained at each row; "all" where all are trained together."""
        tasks = {run.run: run.tasks for run in self}
        together = {run.run for run in self if run.joint}
        pairs = zip(table["run"], table[position], strict=True)
        return ["all" if run in together else tasks[run][index] for run, index in pairs]


TUPLES = ("tasks", "segments", "folders")  # fields of several texts


def _wanted(name: str, value: Any) -> list[Any]:
    """The values that a field may have; read once, since an iterator can be read only once."""
    several = members(value)
    if several is None:
        return [_as_field(name, value)]
    if name in TUPLES and all(isinstance(one, str) for one in several):
        return [tuple(several)]
    return [_as_field(name, one) for one in several]


def _as_field(name: str, value: Any) -> Any:
    if name in TUPLES and (several := members(value)) is not None:
        return tuple(several)
    return Path(value).absolute() if name == "results" and isinstance(value, str | Path) else value


def _matches(run: Run, name: str, wanted: list[Any]) -> bool:
    values = [getattr(run, name)]
    if name == "protocol":
        values.append(protocol_title(run.protocol))  # as its author wrote it
    return any(value in wanted for value in values)


def load_runs(results: str | Path, methods: Mapping[str, Any] | None = None) -> Runs:
    """The runs of a results folder, finished or not.

    `methods` are classes of your own, by the name they are recorded under; only `load_policy` needs
    them, and only for methods that are not installed.
    """
    return read_runs(results, methods or {})


def read_runs(
    results: str | Path,
    methods: Mapping[str, Any],
    *,
    trusted: bool = False,
    tables: Collection[str] = tuple(stored.TABLE_COLUMNS),
    only: Collection[str] | None = None,
) -> Runs:
    """`load_runs`, of all tables or of these, and of all runs or `only` of these."""
    folder = folder_named(results)
    if not folder.is_dir():
        raise UserError(f"no results folder at {str(folder)!r}; give the one you trained into")
    folder = folder.absolute()  # runs are read from it later, wherever the process works then
    found = stored.load_runs(folder, tables, only)
    rows = found.runs.to_dict("records")
    return Runs([_run(row, folder, methods, trusted) for row in rows], found)


def _run(row: Mapping[Any, Any], results: Path, methods: Mapping[str, Any], trusted: bool) -> Run:
    named = {one.name: row[one.name] for one in fields(Run) if one.name in row}
    return Run(**named, results=results, methods=methods, trusted=trusted)
