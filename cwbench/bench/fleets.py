"""Train whole fleets for a short time, and measure where their time goes."""

import contextlib
import math
import os
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from cwbench import envs
from cwbench.bench.timeline import Span, Timeline
from cwbench.fleet.claiming import Outcome
from cwbench.fleet.runner import Runner
from cwbench.learner.method import Method
from cwbench.planning.costs import Costs
from cwbench.planning.estimate import CUDA_BYTES
from cwbench.planning.plan import (
    Grouping,
    Plan,
    Run,
    groups_on_cuda,
    make_plan,
    one_group,
    split_evenly,
)
from cwbench.rollout.pool import Pool
from cwbench.spec.errors import UserError
from cwbench.spec.segment import Segment, Setup
from cwbench.spec.tasks import CW_TASKS
from cwbench.store.results import Store

GIB = 1 << 30
WARM_STEPS = 600  # before a fleet's clock starts: capture and compilation are done


@dataclass(frozen=True)
class Bench:
    """What `fleet_speed` trains: the same number of runs of each method, side by side."""

    setups: Sequence[tuple[Setup, type[Method[Any]]]]
    runs: int  # of each
    length: int  # tasks
    device: torch.device
    workers: int
    compiled: bool
    groups: int | None = None  # of each fleet; None: as training does
    diagnose: bool = True

    @property
    def grouping(self) -> Grouping:
        if self.groups:
            return partial(split_evenly, count=min(self.groups, self.runs))
        return groups_on_cuda if self.device.type == "cuda" else one_group

    def check(self) -> None:
        """UserError if it could not be measured."""
        for setup, method in self.setups:
            if method.experts:
                hint = f"`cwbench bench update --method {setup.method}` measures its updates"
                raise UserError(f"{setup.method} needs runs of {method.experts} first", hint)
        fewest = self.fewest_steps()
        if self.setups[0][0].schedule.steps_per_task < fewest:
            given = self.setups[0][0].schedule.steps_per_task
            raise UserError(f"--steps {given} is too short to measure", f"use {fewest} or more")

    def fewest_steps(self) -> int:
        """Two chunks of updates after all fleets have warmed up; one may be a chunk ahead."""
        alone = len(self.setups) == 1 and len(self.grouping(self._first_segments())) == 1
        return WARM_STEPS + self.setups[0][0].schedule.update_every * (2 if alone else 3)

    def _first_segments(self) -> list[Segment]:
        return [run.segments[0] for run in self.wanted()[: self.runs]]

    @property
    def methods(self) -> dict[str, type[Method[Any]]]:
        return {setup.method: method for setup, method in self.setups}

    def wanted(self) -> list[Run]:
        """Runs on different tasks: all tasks are first ones, and all pairs beginnings."""
        return [
            self._run(number, setup, method)
            for setup, method in self.setups
            for number in range(self.runs)
        ]

    def _run(self, number: int, setup: Setup, method: type[Method[Any]]) -> Run:
        count = len(CW_TASKS)
        stride = 1 + number // count
        tasks = tuple(CW_TASKS[(number + index * stride) % count] for index in range(self.length))
        seed = number // count ** min(self.length, 2)
        segments = method.segments_of_run(setup, seed, tasks)
        return Run("bench", tasks, setup.method, "", tuple(segments))

    def runner(self, store: Store) -> Runner:
        return Runner(
            store,
            self.methods,
            self.device,
            envs.dims,
            grouping=self.grouping,
            compiled=self.compiled,
            snapshot_seconds=float("inf"),
            provenance=lambda segment: {},
            diagnose=self.diagnose,
            side_by_side=len(self.setups),
            compile_ahead=False,  # all fleets start together
        )

    def memory(self, plan: Plan, timeline: Timeline) -> dict[str, float]:
        costs = Costs(self.methods, self.device, compiled=self.compiled)
        needed = [
            sum(map(costs.group_bytes, self.grouping(fleet)))
            for fleet in plan.fleets
            if fleet[0].position == timeline.position
        ]
        return {
            "device_gib": timeline.device_bytes / GIB,
            "device_gib_planned": (sum(needed) + CUDA_BYTES) / GIB,
        }


def fleet_speed(bench: Bench) -> tuple[dict[str, Any], list[Span]]:
    """Train runs on different tasks; statistics of their last task (see `Timeline`)."""
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, Pool(bench.workers) as pool:
        store = Store(Path(folder))
        plan = make_plan(bench.wanted(), store, bench.runs)
        last = [fleet for fleet in plan.fleets if fleet[0].position == bench.length - 1]
        count = sum(len(bench.grouping(fleet)) for fleet in last)
        pool_seconds = time.monotonic() - begun
        timeline = Timeline(pool, bench.length - 1, WARM_STEPS, count)
        _require_measured(bench.runner(store).run(plan, pool, timeline), timeline)
        speed = timeline.summary()
        speed["start_up"] = {
            "pool": pool_seconds,
            "fleets": timeline.built,
            "first_updates": timeline.first_update - timeline.built,
        }
        if bench.device.type == "cuda":
            speed |= bench.memory(plan, timeline)
        return speed, timeline.spans()


def _require_measured(outcome: Outcome, timeline: Timeline) -> None:
    if outcome.failed:
        raise RuntimeError(next(iter(outcome.failed.values())))
    if outcome.interrupted:
        raise KeyboardInterrupt
    if not timeline.ended or not timeline.parts():
        raise UserError(
            "one fleet finished before the measurement began",
            "give a larger --steps or fewer methods",
        )


def process_seconds() -> float:
    """Seconds since this process began; NaN where unknown."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
        uptime = float(Path("/proc/uptime").read_text().split()[0])
        return uptime - ticks / os.sysconf("SC_CLK_TCK")
    return math.nan
