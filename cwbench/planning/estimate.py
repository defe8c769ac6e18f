"""What a plan will need: steps are counted, memory and time measured in short rehearsals."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import fmean

import torch

from cwbench import envs
from cwbench.planning.costs import Costs, Times
from cwbench.planning.machine import available_bytes
from cwbench.planning.plan import Grouping, Plan, one_group
from cwbench.planning.sizes import bare_trainer, count_parameters, kept_bytes
from cwbench.spec.schedule import count_evaluations, count_updates
from cwbench.spec.segment import Segment

PROCESS_BYTES = 450 << 20  # a process with torch loaded
WORKER_BYTES = 120 << 20  # a process with numpy and the simulator loaded
ENV_BYTES = 6 << 20  # one environment on a slim model
# What libraries take on an NVIDIA H200 (docs/performance.md), and the way to the first compiled
# update there, which would take too long to rehearse.
CUDA_BYTES, COMPILING_SECONDS = 1 << 30, 25.0
# Runs that use a GPU fully; fewer leave it to other fleets for a part of the time.
FULL_DEVICE = 50

Left = Mapping[str, int]  # segment id -> steps still to do; without finished segments


@dataclass(frozen=True)
class Estimate:
    steps: int  # environment steps of training
    eval_steps: int
    updates: int
    host_bytes: int  # largest at any time
    device_bytes: int  # 0 without an accelerator
    disk_bytes: int
    seconds: float | None  # None when nothing was measured
    fleets: tuple["FleetNeeds", ...] = ()  # of each fleet, in the plan's order, from its first step


@dataclass(frozen=True)
class FleetNeeds:
    """What one fleet of a plan needs."""

    steps: int
    eval_steps: int
    updates: int
    bytes: int  # of its tensors
    disk_bytes: int
    update_seconds: float  # of the device
    collect_seconds: float  # of as many workers as it can use
    pool_seconds: float  # of all workers, evaluation included
    end_seconds: float = 0.0  # of what the method does at the task's end; no other fleet trains
    groups: int = 1  # that take turns

    @property
    def alone(self) -> float:
        """Seconds if nothing else trains: one group updates while others collect."""
        longer, shorter = sorted((self.update_seconds, self.collect_seconds), reverse=True)
        return max(longer + shorter / self.groups, self.pool_seconds) + self.end_seconds

    def device_seconds(self, runs: int) -> float:
        """Time for which the device can do nothing else."""
        return self.update_seconds * min(1.0, runs / FULL_DEVICE) + self.end_seconds


def estimate(
    plan: Plan,
    costs: Costs,
    workers: int,
    *,
    grouping: Grouping = one_group,
    measure: bool = True,
    side_by_side: int = 1,
    resumed: Left | None = None,
) -> Estimate:
    """What a plan needs; time only if asked to measure, since that takes seconds.

    `resumed`: steps that segments with a snapshot have left. Only time depends on them.
    """
    needs = [_fleet_needs(fleet, costs, workers, grouping, measure) for fleet in plan.fleets]
    left = steps_left(plan.fleets, needs, resumed or {})
    total = Estimate(
        steps=sum(one.steps for one in needs),
        eval_steps=sum(one.eval_steps for one in needs),
        updates=sum(one.updates for one in needs),
        host_bytes=0,
        device_bytes=_bytes_together(plan.fleets, needs, side_by_side),
        disk_bytes=sum(one.disk_bytes for one in needs),
        seconds=planned_seconds(plan.fleets, needs, side_by_side, left) if measure else None,
        fleets=tuple(needs),
    )
    if total.seconds and costs.compiled:  # later fleets are compiled while earlier ones train
        total = replace(total, seconds=total.seconds + COMPILING_SECONDS)
    # A worker keeps the environments of every task it has evaluated; repeated tasks share them.
    tasks = max((len(set(segment.tasks)) for fleet in plan.fleets for segment in fleet), default=0)
    episodes = max((f[0].setup.schedule.eval_episodes for f in plan.fleets), default=0)
    processes = PROCESS_BYTES + workers * (WORKER_BYTES + ENV_BYTES * (episodes * tasks + 1))
    if costs.device.type == "cuda" and plan.fleets:
        return replace(total, host_bytes=processes, device_bytes=total.device_bytes + CUDA_BYTES)
    return replace(total, host_bytes=processes + total.device_bytes, device_bytes=0)


def seconds_together(
    fleets: Sequence[Sequence[Segment]], needs: Sequence[FleetNeeds], side_by_side: int
) -> float:
    """For all fleets: what is needed most decides.

    That is the longest chain of fleets that start from each other, or the device, or the workers,
    or the number of fleets that train at a time.
    """
    if side_by_side == 1:
        return sum(one.alone for one in needs)
    ends: dict[str, float] = {}  # of each segment's chain
    for fleet, one in zip(fleets, needs, strict=True):
        parents = [parent.id for segment in fleet for parent in segment.parents]
        end = one.alone + max((ends.get(parent, 0.0) for parent in parents), default=0.0)
        ends |= dict.fromkeys((segment.id for segment in fleet), end)
    pairs = list(zip(fleets, needs, strict=True))
    return max(
        max(ends.values(), default=0.0),
        sum(one.device_seconds(len(fleet)) for fleet, one in pairs),
        sum(one.pool_seconds for one in needs),
        sum(one.alone for one in needs) / side_by_side,
    )


def steps_left(
    fleets: Sequence[Sequence[Segment]], needs: Sequence[FleetNeeds], resumed: Left
) -> dict[str, int]:
    """Of every segment of a plan, some of which are resumed.

    A segment may have fewer steps of its own than its task has, where an expert made the others.
    """
    return {
        segment.id: min(one.steps // len(fleet), resumed.get(segment.id, segment.steps))
        for fleet, one in zip(fleets, needs, strict=True)
        for segment in fleet
    }


def planned_seconds(
    fleets: Sequence[Sequence[Segment]], needs: Sequence[FleetNeeds], side_by_side: int, left: Left
) -> float:
    """Of what is left of fleets."""
    rest = [
        (fleet, _rest(fleet, one, left))
        for fleet, one in zip(fleets, needs, strict=True)
        if any(segment.id in left for segment in fleet)
    ]
    return seconds_together([fleet for fleet, _ in rest], [one for _, one in rest], side_by_side)


def _rest(fleet: Sequence[Segment], needs: FleetNeeds, left: Left) -> FleetNeeds:
    """A fleet's mean share; the end of its task comes after the last step."""
    steps = [left[segment.id] for segment in fleet if segment.id in left]
    share = sum(steps) / needs.steps
    return replace(
        needs,
        update_seconds=share * needs.update_seconds,
        collect_seconds=share * needs.collect_seconds,
        pool_seconds=share * needs.pool_seconds,
        end_seconds=needs.end_seconds * len(steps) / len(fleet),
    )


def _bytes_together(
    fleets: Sequence[Sequence[Segment]], needs: Sequence[FleetNeeds], side_by_side: int
) -> int:
    """Of the fleets of one position that train side by side; where it is most."""
    found: dict[int, list[int]] = {}
    for fleet, one in zip(fleets, needs, strict=True):
        found.setdefault(fleet[0].position, []).append(one.bytes)
    largest = (sorted(sizes, reverse=True)[:side_by_side] for sizes in found.values())
    return max(map(sum, largest), default=0)


def _fleet_needs(
    fleet: Sequence[Segment], costs: Costs, workers: int, grouping: Grouping, measure: bool
) -> FleetNeeds:
    first, runs = fleet[0], len(fleet)
    schedule, horizon = first.setup.schedule, first.setup.env.horizon
    method_class, dims = costs.method(first)
    trainer = bare_trainer(fleet, dims, method_class)
    method = method_class(first.setup.options, trainer)
    own_steps, when = method.expert_steps or first.steps, (first.steps, method.expert_steps)
    updates = count_updates(schedule, *when)
    episodes = count_evaluations(schedule, *when) * schedule.eval_episodes
    evals = episodes * horizon * len(first.tasks)
    groups = grouping(fleet)
    collect_seconds = pool_seconds = 0.0
    times = costs.times(fleet) if measure else Times(0.0, 0.0, 0.0, 0.0)
    if measure:
        lanes, steps = len(method.lanes(first.position)), own_steps + times.selection * horizon
        costs_of_steps = [envs.step_cost(s.tasks[-1], first.setup.env) for s in fleet]
        shared = runs * fmean(costs_of_steps) * times.step / workers  # by all workers
        # With a worker for each lane, all wait for the slowest.
        collect_seconds = steps * max(max(costs_of_steps) * times.step, lanes * shared)
        pool_seconds = shared * (lanes * steps + evals)
        if costs.device.type == "cpu":  # the trainer takes the cores that others could evaluate on
            collect_seconds += shared * evals
    actor, critic = count_parameters(trainer.policy.network, trainer.critic, len(first.tasks))
    kept = kept_bytes(first, method, dims, first.position + 1) if method.keeps_replay else 0
    return FleetNeeds(
        steps=runs * own_steps,
        eval_steps=runs * evals,
        updates=runs * (updates + round(times.retraining)),
        bytes=sum(map(costs.fleet_bytes, groups)),
        disk_bytes=runs * (4 * (actor + 2 * critic) + kept),
        update_seconds=updates * times.update,
        collect_seconds=collect_seconds,
        pool_seconds=pool_seconds,
        end_seconds=times.end,
        groups=len(groups),
    )


def free_bytes(device: torch.device, workers: int) -> int:
    """Memory that a fleet's tensors may take here; a tenth is left for what is not counted."""
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        return round(0.9 * free) - CUDA_BYTES
    others = PROCESS_BYTES + workers * (WORKER_BYTES + 10 * ENV_BYTES)
    return round(0.9 * available_bytes()) - others


class Memory:
    """What fits into this machine's memory."""

    def __init__(self, costs: Costs, workers: int, grouping: Grouping, fleets: int = 1) -> None:
        """`fleets`: how many share the memory."""
        self.costs, self.workers, self.grouping, self.fleets = costs, workers, grouping, fleets

    @cached_property
    def free(self) -> int:
        """Asked for only where it matters: a plan for another machine's GPU needs none here."""
        return free_bytes(self.costs.device, self.workers) // self.fleets

    def needed(self, fleet: Sequence[Segment]) -> int:
        return sum(map(self.costs.fleet_bytes, self.grouping(fleet)))

    def fits(self, fleet: Sequence[Segment]) -> bool:
        return self.needed(fleet) <= self.free or (len(fleet) == 1 and self._spills(fleet))

    def hold(self, fleets: Sequence[Sequence[Segment]]) -> bool:
        """Whether these fit at the same time."""
        return sum(map(self.needed, fleets)) <= self.free

    def _spills(self, fleet: Sequence[Segment]) -> bool:
        """Whether one run fits a device with its replay in host memory (`host_memory.py`)."""
        if self.costs.device.type == "cpu":
            return False
        replay, host = self.costs.replay_bytes(fleet), torch.device("cpu")
        on_device = self.needed(fleet) - replay
        return on_device <= self.free and replay <= free_bytes(host, self.workers)
