"""What a plan will need: steps are counted, memory and time measured in short rehearsals."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import fmean

import torch

from cwbench import envs
from cwbench.learner.cuda_graph import collect_garbage
from cwbench.planning.costs import Costs, Times
from cwbench.planning.crowding import slowdown
from cwbench.planning.fleet_time import (
    FleetNeeds,
    Fleets,
    Left,
    Parallelism,
    planned_seconds,
    steps_left,
)
from cwbench.planning.machine import available_bytes
from cwbench.planning.plan import Grouping, Plan, one_group, shape_key
from cwbench.planning.sizes import bare_method, count_parameters, kept_bytes
from cwbench.spec.config import EnvConfig
from cwbench.spec.schedule import count_evaluations, count_updates
from cwbench.spec.segment import Segment, Setup

PROCESS_BYTES = 450 << 20  # a process with torch loaded
WORKER_BYTES = 120 << 20  # a process with numpy and the simulator loaded
CUDA_BYTES = 1 << 30  # what libraries take on an NVIDIA H200 (docs/performance.md)
# The way to the first compiled update, which would take too long to rehearse; and to the first of
# each further shape of fleet, which on CUDA another process has compiled by then.
COMPILING_SECONDS, LOADING_SECONDS = {"cuda": 25.0, "cpu": 40.0}, {"cuda": 7.0, "cpu": 40.0}
STARTING_SECONDS = 5.0  # of a process that a launcher starts, before it trains


@dataclass(frozen=True)
class Estimate:
    steps: int  # environment steps of training that are left; likewise the next two
    eval_steps: int
    updates: int
    host_bytes: int  # largest at any time
    device_bytes: int  # 0 without an accelerator
    disk_bytes: int
    seconds: float | None  # None when nothing was measured
    fleets: tuple[FleetNeeds, ...] = ()  # of each fleet, in the plan's order, from its first step


def estimate(
    plan: Plan,
    costs: Costs,
    workers: int,
    *,
    grouping: Grouping = one_group,
    measure: bool = True,
    parallel: Parallelism | None = None,
    resumed: Left | None = None,
) -> Estimate:
    """What a plan needs; time only if asked to measure, since that takes seconds.

    `workers` are those of each process. `resumed`: steps that segments with a snapshot have left.
    """
    parallel = parallel or Parallelism(cores=workers)
    compiling = COMPILING_SECONDS[costs.device.type] if costs.compiled else 0.0
    stepping = min(workers, parallel.cores)
    needs = [
        replace(
            _fleet_needs(fleet, costs, stepping, grouping, measure),
            start_seconds=STARTING_SECONDS + compiling if parallel.processes else 0.0,
            occupancy=parallel.occupancy(costs.device.type, max(map(len, grouping(fleet)))),
        )
        for fleet in plan.fleets
    ]
    left = steps_left(plan.fleets, needs, resumed or {})
    done = [_done(fleet, costs, resumed or {}) for fleet in plan.fleets]
    total = Estimate(
        steps=sum(left.values()),
        eval_steps=sum(one.eval_steps for one in needs) - sum(steps for steps, _ in done),
        updates=sum(one.updates for one in needs) - sum(updates for _, updates in done),
        host_bytes=0,
        device_bytes=_bytes_together(plan.fleets, needs, parallel.fleets_per_device),
        disk_bytes=sum(one.disk_bytes for one in needs),
        seconds=planned_seconds(plan.fleets, needs, parallel, left) if measure else None,
        fleets=tuple(needs),
    )
    if total.seconds and compiling and not parallel.processes:
        shapes = {shape_key(group) for fleet in plan.fleets for group in grouping(fleet)}
        loading = LOADING_SECONDS[costs.device.type] * (len(shapes) - 1)
        total = replace(total, seconds=total.seconds + compiling + loading)
    segments = [segment for fleet in plan.fleets for segment in fleet]
    processes = max(1, parallel.processes) * process_bytes(
        segments, workers, parallel.runs(plan.fleets)
    )
    if costs.device.type == "cuda" and plan.fleets:
        return replace(total, host_bytes=processes, device_bytes=total.device_bytes + CUDA_BYTES)
    return replace(total, host_bytes=processes + total.device_bytes, device_bytes=0)


def _done(fleet: Sequence[Segment], costs: Costs, resumed: Left) -> tuple[int, int]:
    """Evaluation steps and updates before the snapshot of a fleet, whose runs share a step."""
    first = fleet[0]
    if first.id not in resumed:
        return 0, 0
    schedule, expert_steps = first.setup.schedule, costs.expert_steps(fleet)
    step = first.steps - resumed[first.id]
    # The last step's evaluation, the only one of a task that an expert acts in, is to come.
    evaluations = step // schedule.eval_every if expert_steps is None else 0
    updates = count_updates(schedule, step, expert_steps)
    return len(fleet) * evaluations * _evaluation_steps(first), len(fleet) * updates


def _evaluation_steps(segment: Segment) -> int:
    """Steps of one evaluation, if no episode ends early."""
    horizons = (segment.setup.env.only(task).horizon for task in segment.tasks)
    return segment.setup.schedule.eval_episodes * sum(horizons)


def process_bytes(segments: Iterable[Segment], workers: int, runs: int) -> int:
    """Memory of a process and its workers without tensors, while `runs` train at once.

    A worker keeps the environments of every task it has evaluated, one for each episode; repeated
    tasks share them. A run's evaluation of a task is one job, for one worker.
    """
    setups: dict[Setup, set[str]] = {}
    for segment in segments:
        setups.setdefault(segment.setup, set()).update(segment.tasks)
    found: dict[tuple[EnvConfig, str], int] = {}  # episodes of a task
    for setup, tasks in setups.items():
        for task in tasks:
            key = (setup.env, task)
            found[key] = max(found.get(key, 0), setup.schedule.eval_episodes)
    sizes = {(env, task): envs.SUITES[env.suite].env_bytes(task, env) for env, task in found}
    kept = sum(count * sizes[key] for key, count in found.items())
    training = max(sizes.values(), default=0)  # one more, which trains
    return PROCESS_BYTES + workers * (WORKER_BYTES + training) + min(workers, runs) * kept


def _bytes_together(fleets: Fleets, needs: Sequence[FleetNeeds], side_by_side: int) -> int:
    """Most memory of the fleets of one position that share a device."""
    found: dict[int, list[int]] = {}
    for fleet, one in zip(fleets, needs, strict=True):
        found.setdefault(fleet[0].position, []).append(one.bytes)
    largest = (sorted(sizes, reverse=True)[:side_by_side] for sizes in found.values())
    return max(map(sum, largest), default=0)


def _fleet_needs(
    fleet: Sequence[Segment], costs: Costs, workers: int, grouping: Grouping, measure: bool
) -> FleetNeeds:
    """`workers` each have their own core."""
    first, runs = fleet[0], len(fleet)
    schedule, horizon = first.setup.schedule, first.setup.env.only(first.tasks[-1]).horizon
    method_class, dims = costs.method(first)
    method = bare_method(first, method_class, dims)
    own_steps, when = method.expert_steps or first.steps, (first.steps, method.expert_steps)
    updates = count_updates(schedule, *when)
    evals = count_evaluations(schedule, *when) * _evaluation_steps(first)
    groups = grouping(fleet)
    collect_seconds = pool_seconds = 0.0
    if measure:
        times = _one_after_another([costs.times(group) for group in groups])
        lanes, steps = len(method.lanes(first.position)), own_steps + times.selection * horizon
        costs_of_steps = [envs.step_cost(s.tasks[-1], first.setup.env) for s in fleet]
        crowding = costs.crowding(first, workers, times.step)
        shared = runs * fmean(costs_of_steps) * times.step * crowding / workers  # by all workers
        # With a worker for each lane, all wait for the slowest.
        slowest = max(costs_of_steps) * times.step * slowdown(crowding, lanes * runs, workers)
        collect_seconds = steps * max(slowest, lanes * shared)
        pool_seconds = shared * (lanes * steps + evals)
        if costs.device.type == "cpu":  # the trainer takes the cores that others could evaluate on
            collect_seconds += shared * evals
    else:
        times = Times(0.0, 0.0, costs.retraining(fleet), 0.0)
    networks = method.trainer.policy.network, method.trainer.critic
    actor, critic = count_parameters(*networks, len(first.tasks))
    kept = kept_bytes(first, method, dims, first.position + 1) if method.keeps_replay else 0
    return FleetNeeds(
        steps=runs * own_steps,
        eval_steps=runs * evals,
        updates=runs * (updates + round(times.retraining)),
        bytes=sum(map(costs.group_bytes, groups)),
        disk_bytes=runs * (4 * (actor + 2 * critic) + kept),
        update_seconds=updates * times.update,
        collect_seconds=collect_seconds,
        pool_seconds=pool_seconds,
        end_seconds=times.end,
        groups=len(groups),
        lag=schedule.lag if costs.device.type == "cuda" else 0,
    )


def _one_after_another(groups: Sequence[Times]) -> Times:
    """Times of a fleet whose groups update in turn: longer than all runs at once."""
    update, end = sum(one.update for one in groups), sum(one.end for one in groups)
    return replace(groups[0], update=update, end=end)


def free_bytes(device: torch.device, processes: int) -> int:
    """Memory that a fleet's tensors may take here; a tenth is left for what is not counted.

    On the host, minus what the processes take.
    """
    if device.type == "cuda":
        collect_garbage(device)  # of rehearsals
        free, _ = torch.cuda.mem_get_info(device)
        return round(0.9 * free) - CUDA_BYTES
    return round(0.9 * available_bytes()) - processes


class Memory:
    """What fits into this machine's memory."""

    def __init__(
        self, costs: Costs, grouping: Grouping, *, processes: int, fleets: int = 1
    ) -> None:
        """`processes`: bytes of this process and its workers. `fleets`: how many share the rest."""
        self.costs, self.grouping, self.processes, self.fleets = costs, grouping, processes, fleets

    @cached_property
    def free(self) -> int:
        """Asked for only where it matters: a plan for another machine's GPU needs none here."""
        return free_bytes(self.costs.device, self.processes) // self.fleets

    def needed(self, fleet: Sequence[Segment]) -> int:
        return sum(map(self.costs.group_bytes, self.grouping(fleet)))

    def fits(self, fleet: Sequence[Segment]) -> bool:
        return self.needed(fleet) <= self.free or (len(fleet) == 1 and self._spills(fleet))

    def _spills(self, fleet: Sequence[Segment]) -> bool:
        """Whether one run fits a device with its replay in host memory (`host_memory.py`)."""
        if self.costs.device.type == "cpu":
            return False
        replay, host = self.costs.replay_bytes(fleet), torch.device("cpu")
        on_device = self.needed(fleet) - replay
        return on_device <= self.free and replay <= free_bytes(host, self.processes)
