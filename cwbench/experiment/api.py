"""Plan and train from Python, with the command line's planner, claims and results folder.

plan = cwbench.plan("recall", "cw3-1", seeds=range(5), protocol="compact", lambda_=5.0)
runs = cwbench.train(plan)
"""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeAlias

from cwbench.experiment.build import (
    check_count,
    check_declared,
    find_options,
    parse_seeds,
    parse_unshared,
    runs_of,
)
from cwbench.experiment.execution import Execution, Launching
from cwbench.experiment.listener import Silent, Terminal
from cwbench.experiment.objects import SequenceLike, find_method, find_sequences
from cwbench.experiment.results_folder import anchored, folder_named
from cwbench.experiment.runs import Runs, read_runs
from cwbench.experiment.session import Paused, Session, open_session
from cwbench.spec.errors import UserError
from cwbench.spec.failure import brief
from cwbench.spec.notebook_source import source_hash
from cwbench.spec.options import as_index, members, plain, take
from cwbench.spec.protocol import parse_protocol
from cwbench.spec.source import check_unchanged, is_replaced, of_main
from cwbench.spec.text import counted, shown

if TYPE_CHECKING:
    from cwbench.learner.method import Method
    from cwbench.planning import plan as planning
    from cwbench.planning.estimate import Estimate


Seeds: TypeAlias = SupportsIndex | str | Iterable[SupportsIndex]


class TrainingError(RuntimeError):
    """Some runs failed or diverged. `runs` holds all runs of the plan, as far as they got."""

    def __init__(self, message: str, runs: Runs) -> None:
        super().__init__(message)
        self.runs = runs

    def __reduce__(self) -> tuple[Any, ...]:  # by itself Python keeps the message only
        return type(self), (str(self), self.runs)


@dataclass(frozen=True, eq=False, repr=False)
class Plan:
    """Runs to be trained, with their steps, memory and time. `train` carries it out."""

    name: str
    runs: tuple[planning.Run, ...]
    session: Session
    # Hashes of methods, as their hooks left them.
    _hashes: dict[str, str] = field(default_factory=dict, init=False)

    @property
    def protocol(self) -> str:
        """Its name."""
        return self.session.protocol

    @cached_property
    def fleets(self) -> planning.Plan:
        """The segments that are missing now, grouped into fleets."""
        with self._calling_hooks():
            return self.session.plan(self.runs)

    @cached_property
    def estimate(self) -> Estimate:
        """Steps, updates, memory, and time from a short measurement on this machine."""
        with self._calling_hooks():
            return self.session.estimate(self.fleets)

    @contextmanager
    def _calling_hooks(self) -> Iterator[None]:
        """Around what calls hooks: they may change values of a script on which hashes depend."""
        try:
            yield
        finally:
            self._hashes.update({name: _hash_now(self, name) for name, _ in self._sources})

    @property
    def _sources(self) -> set[tuple[str, str]]:
        """Methods from outside the package, and the hashes of their code."""
        every = {(s.setup.method, s.setup.source) for run in self.runs for s in run.segments}
        return {(name, source) for name, source in every if source}

    def _forget(self) -> None:
        """Look again for what is missing when next asked."""
        for name in ("fleets", "estimate"):
            vars(self).pop(name, None)

    @property
    def segments(self) -> list[str]:
        """Ids of the segments, each once: what `cwbench run` with the same options trains."""
        return list(dict.fromkeys(segment.id for run in self.runs for segment in run.segments))

    def __repr__(self) -> str:
        lines = self.session.describe(self.fleets, self.estimate)
        return "\n".join([f"{self.name}, protocol {self.protocol}", *lines])


def plan(
    method: str | type[Method[Any]],
    sequence: SequenceLike,
    *,
    seeds: Seeds = 0,
    protocol: str | Path = "paper",
    results: str | Path = "results",
    unshared: str | Iterable[str] | None = None,
    **options: Any,
) -> Plan:
    """Plan to train a method on a sequence; printing it shows what it takes. Writes nothing.

    `method`: a name, `path/to/file.py:Class` or a subclass of `cwbench.Method`.
    `sequence`: a name or pattern (`cw3-*`) as on the command line, a `.toml` file, a list of task
    names or of `cwbench.Task`s, or a `cwbench.Sequence`.
    `seeds`: a number, several, or text such as "0-4".
    `protocol`: a name such as "compact", or a `.toml` file.
    `results`: the results folder, which `train` makes.
    `unshared`: "actor", "critic" or both: these have a separate network for each task.
    `options`: those of `cwbench run` with underscores: the method's own and shared ones
    (`lambda_=5.0`, `steps_per_task=50_000`) and those of execution (`device="cpu"`, `workers=4`).
    """
    asked = parse_protocol(protocol)
    name, recorded, entry = find_method(method)
    check_declared(recorded, entry)
    wanted = find_sequences(sequence)
    numbers = parse_seeds(seed_text(seeds))
    execution, launching = take(Execution, options), take(Launching, options)
    check_count(len(wanted) * len(numbers))
    alone = parse_unshared(None if unshared is None else _joined(unshared))
    homes = find_options(options, name, entry)
    options = {home[1]: plain(*home, options[key]) for key, home in homes.items()}
    runs = runs_of(
        name, recorded, entry, asked, options, wanted=wanted, seeds=numbers, unshared=alone
    )
    session = open_session(
        folder_named(results),
        {recorded: entry.method},
        [segment for run in runs for segment in run.segments],
        execution=execution,
        launching=launching_for(entry.method, launching),
        listener=Terminal(),
        protocol=asked.name,
        command="the same call of cwbench.train",
    )
    session = replace(session, store=anchored(session.store))
    title = f"{runs[0].label} on {', '.join(one.name for one in wanted)}"
    return Plan(title, tuple(runs), session)


def _joined(names: str | Iterable[str]) -> str:
    several = members(names)
    return str(names) if several is None else ",".join(map(str, several)) or "none"


def seed_text(seeds: Seeds) -> str:
    if isinstance(seeds, str):
        return seeds
    several = members(seeds)
    if several == []:
        raise UserError("seeds is empty", "give at least one")
    given = [seeds] if several is None else several
    numbers = [one if isinstance(one, str) else as_index(one) for one in given]
    if None in numbers:
        what = f"seeds={shown(seeds)}: not a number or several"
        raise UserError(what, "give 3, range(5) or '0-4'")
    return ",".join(map(str, numbers))


def launching_for(method: type, launching: Launching) -> Launching | None:
    """None for a method that other processes cannot find. UserError if they should train it."""
    if not of_main(method):
        return launching
    default = vars(Launching())
    for name, value in vars(launching).items():
        if value != default[name]:
            raise UserError(
                f"{name}={value!r}: {method.__name__} is defined in a script or notebook, "
                "so it trains in this process only",
                "put the class in a file of its own and import it",
            )
    return None


def train(plan: Plan, *, quiet: bool = False, live: bool = False) -> Runs:
    """Train what a plan still lacks, and return its runs.

    Ctrl-C saves and raises KeyboardInterrupt; the same call continues. Raises TrainingError if
    runs failed or diverged. `live` keeps RESULTS/report/index.html up to date.
    """
    if not isinstance(plan, Plan):
        raise UserError(f"{shown(plan)} is not a plan", "give what cwbench.plan returns")
    if threading.current_thread() is not threading.main_thread():
        raise UserError("train was called in a thread", "call it in the main thread, for Ctrl-C")
    session = replace(plan.session, listener=Silent() if quiet else Terminal())
    changed = _changed(plan)
    plan._forget()  # something may have been trained since, and is trained now
    with plan._calling_hooks():
        todo = session.plan(plan.runs)
        if todo.missing:
            _check_trainable(plan, changed)
        session.check(todo)
        session.record({plan.name: plan.runs})
        if todo.missing:
            needs = None if quiet else session.estimate(todo)
            good = session.carry_out(todo, needs, live=live)
    runs = _runs_of(plan)
    if todo.missing and not good:
        _raise_failure(todo, session, runs)
    return runs


def _changed(plan: Plan) -> list[str]:
    """Methods that are not those that were planned, whose ids their results would get."""
    return [
        name
        for name, source in plan._sources
        if _hash_now(plan, name) not in (source, plan._hashes.get(name))
        or is_replaced(plan.session.methods[name])
    ]


def _hash_now(plan: Plan, name: str) -> str:
    """Empty if hooks have left something that has no hash."""
    try:
        return source_hash(plan.session.methods[name])
    except UserError:
        return ""


def _check_trainable(plan: Plan, changed: Sequence[str]) -> None:
    if changed:
        raise UserError(f"{changed[0]} has changed since it was planned", "plan again")
    for env in {run.segments[-1].setup.env for run in plan.runs}:  # workers read its files
        env.check_unchanged()
    if plan.session.launcher is not None:  # other processes read the file
        for name, _ in plan._sources:
            check_unchanged(plan.session.methods[name])
    elif multiprocessing.current_process().daemon:
        hint = "use concurrent.futures.ProcessPoolExecutor"
        raise UserError("train was called in a multiprocessing.Pool, which allows no workers", hint)


def _runs_of(plan: Plan) -> Runs:
    """The runs of a plan, as they are on disk."""
    session = plan.session
    names = {run.name for run in plan.runs}
    return read_runs(session.store.root, session.methods, trusted=True, only=names)


def _raise_failure(todo: planning.Plan, session: Session, runs: Runs) -> None:
    failures = []
    for segment in todo.segments:
        status = session.store.folder(segment).status()
        if status["state"] in ("failed", "diverged", "damaged"):
            failures.append(f"{segment.folder} {status['state']}: {brief(status)}")
    if not failures:
        raise Paused
    unfinished = counted(len(failures), "segment is", "segments are")
    raise TrainingError("\n".join([f"{unfinished} not done", *failures]), runs)
