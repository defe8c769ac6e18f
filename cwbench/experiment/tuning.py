"""Choosing a method's options by a stated rule, on sequences that then cannot test them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cwbench.experiment import api
from cwbench.experiment.build import find_option, find_options, load_method, parse_seeds
from cwbench.experiment.definition import Experiment, members_of
from cwbench.experiment.execution import Execution, Launching
from cwbench.experiment.listener import Silent, Terminal
from cwbench.experiment.objects import SequenceLike, find_method, find_several
from cwbench.experiment.results_folder import anchored, folder_named
from cwbench.experiment.session import open_session
from cwbench.reports.analysis.comparison import DIGITS
from cwbench.reports.analysis.intervals import t_quantile
from cwbench.reports.analysis.tuned import possible_areas, sensitivity
from cwbench.spec import options
from cwbench.spec.config import MetaWorldConfig, ScheduleConfig
from cwbench.spec.errors import UserError, located
from cwbench.spec.options import field_names, plain, take
from cwbench.spec.protocol import ProtocolLike, parse_protocol
from cwbench.spec.schedule import milestones
from cwbench.spec.statistics import success_column
from cwbench.spec.text import as_command, counted, shown
from cwbench.store import tuning as store
from cwbench.store.runs import Runs, load_runs

if TYPE_CHECKING:
    import pandas as pd

    from cwbench.learner.method import Method
    from cwbench.planning.plan import Run
    from cwbench.sequences import Sequence as TaskSequence

RULE = "highest mean anytime performance"


@dataclass(frozen=True)
class Setting:
    """One candidate and how it did: the mean over seeds and sequences, with a 90 % t interval."""

    options: Mapping[str, Any]
    score: float
    low: float
    high: float
    runs: int


@dataclass(frozen=True)
class Tuning:
    """Candidates, the sequences they are tried on, and how much of each sequence."""

    experiment: Experiment
    on: tuple[str, ...]  # names of the whole sequences
    swept: tuple[str, ...]  # options whose values are tried; the others are shared by all settings
    first: float | None = None  # percent of a sequence's tasks that may be looked at

    @property
    def rule(self) -> str:
        part = "" if self.first is None else f" in the first {self.first:g} % of each sequence"
        return RULE + part

    def settings(self, results: Path, runs: Sequence[Run]) -> list[Setting]:
        """The candidates, best first; ties in the order named. UserError if one is missing."""
        loaded = load_runs(results, ["evals"], {run.name for run in runs})
        areas = run_areas(loaded.evals, runs)
        for run in runs:
            if run.name not in areas:
                raise _lacking(run, loaded, results)
        count = len(runs) // len(self.experiment.members)
        found = []
        for number, member in enumerate(self.experiment.members):
            own = [run.name for run in runs[number * count : (number + 1) * count]]
            values = {name: member.options[name] for name in self.swept}
            found.append(setting_of(values, np.array([areas[name] for name in own])))
        return sorted(found, key=lambda setting: -setting.score)

    def finish(self, results: Path, runs: Sequence[Run], command: str) -> Tuned:
        """Choose from trained runs, and write the choice down."""
        settings = self.settings(results, runs)
        record = self.record(settings, runs) | {"command": command}
        file = store.write(results, record)
        return Tuned(record["options"], tuple(settings), record, file)

    @property
    def _shared(self) -> dict[str, Any]:
        """Options of all settings, except those of schedule and environment."""
        shared = self.experiment.members[0].options
        apart = {*self.swept} | field_names(MetaWorldConfig, ScheduleConfig)
        return {name: value for name, value in shared.items() if name not in apart}

    @property
    def _variant(self) -> dict[str, Any]:
        """The variant that was tuned: runs are recorded under its base, which has other options."""
        from cwbench.methods import VARIANTS

        method = self.experiment.members[0].method
        return {"variant": method} if method in VARIANTS else {}

    def record(self, settings: Sequence[Setting], runs: Sequence[Run]) -> dict[str, Any]:
        """What is written down: the choice, what it was made from, and what that cost."""
        segments = {segment.id: segment for run in runs for segment in run.segments}
        sequences = dict.fromkeys(run.sequence for run in runs)
        setup = runs[0].segments[0].setup
        unnamed = options.completed(type(setup.options), {})  # what records without them mean
        return {
            "method": setup.method,
            **self._variant,
            "options": {**self._shared, **settings[0].options},
            "left_out": {name: unnamed[name] for name in self.swept if name in unnamed},
            "on": list(dict.fromkeys((*self.on, *sequences))),
            "rule": self.rule,
            "protocol": self.experiment.protocol.name,
            "seeds": list(self.experiment.seeds),
            "runs": len(runs),
            "steps": sum(segment.steps for segment in segments.values()),
            "settings": [
                vars(setting) | {"options": dict(setting.options)} for setting in settings
            ],
        }


def make_tuning(
    method: str | type[Method[Any]],
    on: Sequence[TaskSequence],
    sweep: Mapping[str, Sequence[Any]],
    *,
    fixed: Mapping[str, Any] | None = None,
    seeds: Sequence[int] = (0,),
    protocol: ProtocolLike = "paper",
    first: float | None = None,
) -> Tuning:
    """Every combination of the swept values, on all or the first part of some sequences."""
    if not sweep:
        raise UserError("no option has several values", "give --option NAME=VALUE,VALUE,...")
    given = {**(fixed or {}), **{name: list(values) for name, values in sweep.items()}}
    found = members_of({"name": method, "options": given}, {})
    recorded, entry = load_method(method)
    called = method if isinstance(method, str) else recorded
    fields = (find_option(name, called, entry)[1] for name in sweep)
    named = tuple(dict.fromkeys((*fields, *found[0].swept)))
    # What is named with one value is shared, unless nothing has several.
    swept = tuple(n for n in named if any(m.options[n] != found[0].options[n] for m in found))
    swept = swept or named
    sequences = tuple(on) if first is None else tuple(_cut(one, first) for one in on)
    experiment = Experiment(
        name=f"tuning {called} on {', '.join(one.name for one in on)}",
        description="",
        members=tuple(replace(member, swept=swept) for member in found),
        sequences=sequences,
        seeds=tuple(seeds),
        protocol=parse_protocol(protocol),
    )
    return Tuning(experiment, tuple(one.name for one in on), swept, first)


def _cut(sequence: TaskSequence, percent: float) -> TaskSequence:
    """The first tasks of a sequence, as many as a share of its steps touches."""
    number = isinstance(percent, Real) and not isinstance(percent, bool)
    if not number or not 0 < percent <= 100:
        raise UserError(
            f"--first {shown(percent)}: not a share of a sequence",
            "give more than 0 and at most 100",
        )
    count = math.ceil(percent * len(sequence.tasks) / 100)
    if count == len(sequence.tasks):
        return sequence
    name = f"{sequence.name}-first-{count}"
    return replace(sequence, name=name, tasks=sequence.tasks[:count])


def parse_sweep(texts: Sequence[str], method: str) -> dict[str, list[Any]]:
    """`lambda=1,10,100` -> the option's field and its values, each of the option's type.

    Semicolons separate values of options that take commas: `hidden=64,64;128,128`.
    """
    _, entry = load_method(method)
    found: dict[str, list[Any]] = {}
    for text in texts:
        name, sign, values = text.partition("=")
        if not (sign and values):
            raise UserError(f"--option {text}: no values", "write NAME=VALUE,VALUE,...")
        group, field = find_option(name, method, entry, as_flag=True)
        if field in found:
            raise UserError(f"--option {name} is given twice", "write NAME=VALUE,VALUE,...")
        declared = options.field_of(group, field)
        hint = options.field_type(group, declared)
        between = ";" if "," in (declared.metadata.get("metavar") or "") else ","
        with located(f"--option {name}"):
            found[field] = [_value(hint, part.strip()) for part in values.split(between)]
    return found


def _value(hint: Any, text: str) -> Any:
    if hint is bool and text in ("true", "false"):
        return text == "true"
    return options.parse(hint, text)


def run_areas(evals: pd.DataFrame, runs: Sequence[Run]) -> dict[str, float]:
    """Run -> mean over evaluations of the mean success over all its tasks, unseen ones as 0.

    That is its anytime performance, even if all tasks are learned at once. Without runs that
    lack an evaluation.
    """
    found = {str(name): rows for name, rows in evals.groupby("run")}
    areas = {}
    for run in runs:
        rows = found.get(run.name, evals[:0])
        column = success_column(getattr(run.segments[-1].setup.env, "success", None))
        rate = rows[column] / rows["episodes"]
        known = rows[rate.notna()]
        if _evaluations(run) <= set(zip(known["step"], known["eval_position"], strict=True)):
            areas[run.name] = float(rate.groupby(rows["step"]).sum().mean()) / len(run.tasks)
    return areas


def _evaluations(run: Run) -> set[tuple[int, int]]:
    """Steps at which a finished run has evaluated, and the positions evaluated there."""
    found, start = set(), 0
    for segment in run.segments:
        steps = _evaluation_steps(segment.setup.schedule, segment.steps, bool(segment.experts))
        found |= {
            (start + step, position) for step in steps for position in range(len(segment.tasks))
        }
        start += segment.steps
    return found


@cache  # one for all runs
def _evaluation_steps(schedule: ScheduleConfig, steps: int, expert: bool) -> tuple[int, ...]:
    made = milestones(schedule, steps, 0 if expert else None)
    return tuple(one.step for one in made if one.evaluate)


def _lacking(run: Run, loaded: Runs, results: Path) -> UserError:
    """Why a run cannot be judged, and what to do."""
    [state] = loaded.runs["state"][loaded.runs["run"] == run.name]
    if state != "done":
        return UserError(f"run {run.name} is not done", "the same command continues")
    folders = [segment.folder for segment in run.segments]
    problems = [one for one in loaded.problems if any(folder in one for folder in folders)]
    repair = as_command("repair", results)
    return UserError(
        f"run {run.name} lacks evaluations{''.join(f': {one}' for one in problems[:1])}",
        f"{repair} sets damaged segments aside, the same command trains them",
    )


def setting_of(values: Mapping[str, Any], scores: np.ndarray[Any, Any]) -> Setting:
    mean, count = round(float(scores.mean()), DIGITS), len(scores)
    reach = math.nan
    if count > 1:
        reach = t_quantile(count - 1) * float(scores.std(ddof=1)) / math.sqrt(count)
    return Setting(values, mean, *possible_areas(mean - reach, mean + reach), count)


def check_waits(launching: Launching) -> None:
    """UserError if training would not have ended when options are to be chosen."""
    if not launching.waits:
        raise UserError(
            f"--launcher {launching.launcher}: tune has to wait for the results",
            "use --launcher local or ray",
        )


@dataclass(frozen=True)
class Tuned:
    """Result of `cwbench.tune`. Printing it shows how the options were chosen."""

    # The chosen ones and those that all settings share: `cwbench.plan(method, sequence, **options)`
    options: Mapping[str, Any]
    settings: tuple[Setting, ...]  # all candidates, best first
    record: Mapping[str, Any]
    file: Path

    def __str__(self) -> str:
        return "\n".join(summary(self.settings, self.record))


def tune(
    method: str | type[Method[Any]],
    on: SequenceLike | Sequence[SequenceLike],
    sweep: Mapping[str, Iterable[Any]],
    *,
    seeds: api.Seeds = 0,
    protocol: str | Path = "paper",
    first: float | None = None,
    results: str | Path = "results",
    quiet: bool = False,
    **options: Any,
) -> Tuned:
    """Grid search over the values in `sweep`; chooses by the mean anytime performance.

    Like `cwbench tune`. `method` and `on` are as in `cwbench.plan`, so a list of tasks is one
    sequence; `on` may also be a list of sequences. With `first`, only that percentage of each.
    Other `options` are shared by all settings or control execution, as in `cwbench.plan`.
    """
    if not isinstance(sweep, Mapping):
        raise UserError(f"{shown(sweep)} is not a sweep", 'give {"coef": [1.0, 10.0]}')
    called, _, entry = find_method(method)
    for name, values in sweep.items():
        if isinstance(values, str) or not isinstance(values, Iterable):
            raise UserError(
                f"sweep of {name}: {shown(values)} is not several values", "give a list"
            )
    folder = folder_named(results)
    execution, launching = take(Execution, options), take(Launching, options)
    check_waits(launching)
    fields = find_options((*sweep, *options), called, entry)
    tuning = make_tuning(
        method,
        find_several(on),
        {name: [plain(*fields[name], one) for one in values] for name, values in sweep.items()},
        fixed={name: plain(*fields[name], value) for name, value in options.items()},
        seeds=parse_seeds(api.seed_text(seeds)),
        protocol=protocol,
        first=first,
    )
    runs, methods = tuning.experiment.runs()
    segments = [segment for run in runs for segment in run.segments]
    call = "the same call of cwbench.tune"
    session = open_session(
        folder,
        methods,
        segments,
        execution=execution,
        launching=api.launching_for(entry.method, launching),
        listener=Silent() if quiet else Terminal(),
        protocol=runs[0].protocol,
        command=call,
    )
    session = replace(session, store=anchored(session.store))
    api.train(api.Plan(tuning.experiment.name, tuple(runs), session), quiet=quiet)
    tuned = tuning.finish(folder, runs, call)
    return replace(tuned, file=tuned.file.absolute())


def _listed(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{options.flag_name(name)}={value}" for name, value in values.items())


def summary(settings: Sequence[Setting], record: Mapping[str, Any]) -> list[str]:
    """What a reader must know about the choice, in a few lines."""
    chosen, shared = settings[0].options, record["options"]
    shared = {name: value for name, value in shared.items() if name not in chosen}
    spread = settings[0].score - settings[-1].score
    equal = sum(setting.score == settings[0].score for setting in settings)
    first = f" (the first of {equal} equal settings)" if equal > 1 else ""
    lines = [
        f"chosen by {record['rule']}: {_listed(chosen)}{first}"
        + (f"; all settings have {_listed(shared)}" if shared else ""),
        f"{counted(len(settings), 'setting')}, {counted(record['runs'], 'run')}, "
        f"{record['steps']:,} environment steps; "
        f"best minus worst setting: {spread:.3f}",
    ]
    for name, values in sensitivity([(s.options, s.score) for s in settings]).items():
        text = ", ".join(f"{value}: {score:.3f}" for value, score in values.items())
        lines.append(f"mean anytime performance by {options.flag_name(name)}: {text}")
    return lines
