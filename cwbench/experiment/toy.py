"""Whole runs of seconds: any method on the point mass, with real worker processes."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import torch

from cwbench.experiment import build
from cwbench.experiment.execution import Execution
from cwbench.experiment.listener import Silent
from cwbench.experiment.session import Session
from cwbench.fleet.claiming import Outcome
from cwbench.fleet.progress import Display
from cwbench.planning.plan import Plan, Run, split_evenly
from cwbench.rollout.pool import Pool
from cwbench.sequences import Sequence
from cwbench.spec.config import ScheduleConfig
from cwbench.store.results import Store

TASKS = ("reach-0-1", "reach-2-1000", "reach-4-1")
SCHEDULE = ScheduleConfig(
    steps_per_task=60,
    eval_every=25,
    eval_episodes=2,
    start_steps=10,
    update_after=20,
    update_every=10,
)
SMALL = {"batch_size": 8, "width": 8, "horizon": 20}
# What methods need so that their parts act within a toy task of 40 updates.
OPTIONS: dict[str, dict[str, Any]] = {
    "redo": {"every": 7, "tau": 0.9, "samples": 8},
    "continual-backprop": {"every": 3, "maturity": 6, "replacement_rate": 0.02, "samples": 8},
    "er": {"memory": 50, "memory_batch": 8},
    "reset-distill": {"distill_updates": 10, "memory_size": 20, "expert_steps": 30},
    "progress-compress": {"distill_updates": 10, "importance_samples": 20},
    "cka-rl": {"pool": 2},
    "csp": {"candidates": 4, "candidate_states": 8, "episodes": 1},
}


class ToyResult(NamedTuple):
    store: Store
    plan: Plan
    outcome: Outcome


class StopAfter(Display):
    """Sends this process a signal after n chunks.

    A scheduler's: it has the longest grace, and on a busy machine a chunk may take long.
    """

    def __init__(self, chunks: int) -> None:
        self.left = chunks

    def advance(self, group: Any) -> None:
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGUSR1)


class Stopping(Silent):
    """Tells nobody, and stops after n chunks."""

    def __init__(self, chunks: int) -> None:
        self.chunks = chunks

    def progress(self, forecast: Any) -> StopAfter:
        return StopAfter(self.chunks)


def _toy_runs(
    name: str,
    tasks: tuple[str, ...],
    seeds: tuple[int, ...],
    given: Mapping[str, Any],
    settings: Iterable[Mapping[str, Any]],
) -> list[Run]:
    """A run for each setting of a method's options and each seed."""
    sequence = Sequence("toy", tasks, "pointmass")
    base, entry = build.load_method(name)
    chosen = {**given, **OPTIONS.get(base, {})}
    setups = [
        build.make_setup(base, entry, "paper", {**chosen, **own}, sequence) for own in settings
    ]
    return [
        build.make_run(entry, build.label_name(name), setup, "toy", sequence, seed)
        for setup in setups
        for seed in seeds
    ]


def train_toy(
    pool: Pool,
    root: Path,
    *names: str,
    seeds: tuple[int, ...] = (0,),
    tasks: tuple[str, ...] = TASKS,
    stop_after: int = 0,
    groups: int = 1,
    side_by_side: int | None = None,
    snapshot_seconds: float = 1e9,
    schedule: ScheduleConfig = SCHEDULE,
    sac: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
    sweep: Iterable[Mapping[str, Any]] = ({},),
    diagnostics: bool = False,
    compiled: bool = False,
) -> ToyResult:
    """Train methods on the toy tasks into a folder, as `cwbench run` would."""
    names, settings = names or ("finetuning",), list(sweep)
    given = {**SMALL, **(sac or {}), **asdict(schedule)}
    experiments = {
        name: _toy_runs(name, tasks, seeds, given, [{**(options or {}), **own} for own in settings])
        for name in names
    }
    methods = {base: entry.method for base, entry in map(build.load_method, names)}
    execution = Execution(
        threads=1,
        snapshot_minutes=snapshot_seconds / 60,
        fleet_size=8,
        side_by_side=side_by_side,
        diagnostics=diagnostics,
        compile=compiled,
    )
    session = Session(
        Store(root),
        methods,
        execution,
        torch.device("cpu"),
        listener=Stopping(stop_after),
        protocol="toy",
        fits=lambda fleet: True,
        groups=lambda fleet: split_evenly(fleet, min(groups, len(fleet))),
    )
    session.record(experiments)
    plan = session.plan([run for runs in experiments.values() for run in runs])
    return ToyResult(session.store, plan, session.train(plan, pool))
