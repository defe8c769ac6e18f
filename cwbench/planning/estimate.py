"""What a plan will need: steps are counted, memory and time measured in short rehearsals."""

import contextlib
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass, fields, replace
from functools import cached_property, partial
from math import prod
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import torch

from cwbench import envs
from cwbench.learner.cuda_graph import WARM_UP
from cwbench.learner.method import Method
from cwbench.learner.networks import make_critic
from cwbench.learner.policy import make_policy
from cwbench.learner.trainer import Trainer
from cwbench.planning.plan import Grouping, Plan, one_group
from cwbench.planning.rehearsal import Rehearsal, run_bytes
from cwbench.planning.time_cache import TimeCache
from cwbench.rollout.episodes import Envs, Lane, LaneSpec
from cwbench.rollout.numpy_policy import Actor
from cwbench.spec.schedule import count_evaluations, count_updates, longest_share
from cwbench.spec.segment import Segment
from cwbench.spec.transition import Dims

PROCESS_BYTES = 450 << 20  # a process with torch loaded
WORKER_BYTES = 120 << 20  # a process with numpy and the simulator loaded
ENV_BYTES = 6 << 20  # one environment on a slim model
# Measured on an NVIDIA H200 (docs/performance.md): what libraries take on the device, what a
# compiled update there needs of the tensors and of the time of a plain one, and the way to the
# first compiled update, which would take too long to rehearse.
CUDA_BYTES, COMPILED_SHARE, COMPILED_TIME, COMPILING_SECONDS = 1 << 30, 0.44, 0.6, 25.0
SCRATCH_BYTES = 32 << 20  # cuBLAS's workspace on Hopper, for each fleet with its own stream
CHUNK = 50  # steps between two readings of the clock
CAPTURED = 20  # captured updates between two readings
MEASURE_SECONDS = 2.5  # for all times of a plan; the first ones get more of it
# Runs that use a GPU fully; fewer leave it to other fleets for a part of the time.
FULL_DEVICE = 50


@dataclass(frozen=True)
class Estimate:
    steps: int  # environment steps of training
    eval_steps: int
    updates: int
    host_bytes: int  # largest at any time
    device_bytes: int  # 0 without an accelerator
    disk_bytes: int
    seconds: float | None  # None when nothing was measured


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
    groups: int = 1  # that take turns

    @property
    def alone(self) -> float:
        """Seconds if nothing else trains: one group updates while others collect."""
        longer, shorter = sorted((self.update_seconds, self.collect_seconds), reverse=True)
        return max(longer + shorter / self.groups, self.pool_seconds)

    def device_seconds(self, runs: int) -> float:
        """Time for which the device can do nothing else."""
        return self.update_seconds * min(1.0, runs / FULL_DEVICE)


def parameter_counts(segment: Segment, dims: Dims) -> tuple[int, int]:
    """Parameters of the actor and of both critics, all heads included."""
    network, tasks = segment.setup.network, len(segment.tasks)
    actor, critic = make_policy(*dims[:2], network).network, make_critic(*dims[:2], network)
    return count_parameters(actor, critic, tasks)


def count_parameters(actor: Any, critic: Any, tasks: int) -> tuple[int, int]:
    counts = [sum(prod(s) for s in net.shapes(tasks).values()) for net in (actor, critic)]
    return counts[0], counts[1]


def row_bytes(dims: Dims) -> int:
    return 4 * Dims(*dims).width


def replay_bytes(segments: Sequence[Segment], method: Method[Any], dims: Dims) -> int:
    """Transitions in memory for a fleet: each run's own, and each distinct ancestor's once."""
    first, size = segments[0], segments[0].setup.sac.buffer_size
    lanes = method.lanes(first.position)
    horizon = first.setup.env.horizon
    steps = method.expert_steps or first.steps
    share = max(longest_share(steps, len(lane), horizon) for lane in lanes)
    live = {position for lane in lanes for position in lane}
    own = len(segments) * len(live) * min(size, share) * row_bytes(dims)
    ancestors = set()
    if method.keeps_replay:
        for segment in segments:
            parent = segment.parent
            while parent is not None:
                if parent.position not in live:
                    ancestors.add(parent.id)
                parent = parent.parent
    return own + len(ancestors) * kept_bytes(first, method, dims, first.position)


def kept_bytes(segment: Segment, method: Method[Any], dims: Dims, tasks: int) -> int:
    """What is kept of each finished task when there are `tasks` of them."""
    rows = min(segment.setup.sac.buffer_size, segment.steps)
    limit = method.rows_per_task(tasks)
    rows = rows if limit is None else min(rows, limit)
    return rows * (row_bytes(dims) + 4 * method.annotation_width)


class Costs:
    """What fleets take, measured once for each setup and position.

    Later positions cost more, because heads and memories grow with every task by the same amount.
    So three positions are rehearsed; the others are interpolated from the last two.
    """

    POSITIONS = (0, 1, 4)

    def __init__(
        self,
        methods: Mapping[str, type[Method[Any]]],
        device: torch.device,
        *,
        compiled: bool = False,
        cache: TimeCache | None = None,
    ) -> None:
        self.methods, self.device, self.cache = methods, device, cache
        self._left = MEASURE_SECONDS
        self.compiled = compiled and device.type == "cuda"
        self._bytes: dict[tuple[Any, ...], int] = {}
        self._times: dict[tuple[Any, ...], dict[int, Times]] = {}  # by fleet size

    def method(self, segment: Segment) -> tuple[type[Method[Any]], Dims]:
        return self.methods[segment.setup.method], envs.dims(segment.setup.env)

    def fleet_bytes(self, fleet: Sequence[Segment]) -> int:
        """Tensors of a fleet: replay, and for each run what it holds and what an update needs."""
        per_run = self._line(fleet[0], self._run_bytes)
        scratch = SCRATCH_BYTES if self.device.type == "cuda" else 0
        return len(fleet) * round(per_run) + self.replay_bytes(fleet) + scratch

    def replay_bytes(self, fleet: Sequence[Segment]) -> int:
        method_class, dims = self.method(fleet[0])
        method = method_class(fleet[0].setup.options, bare_trainer(fleet, dims, method_class))
        return replay_bytes(fleet, method, dims)

    def _run_bytes(self, segment: Segment) -> float:
        key = (segment.setup, segment.tasks if segment.joint else segment.position)
        if key not in self._bytes:
            held, working = run_bytes(segment, *self.method(segment))
            self._bytes[key] = held + round(working * (COMPILED_SHARE if self.compiled else 1))
        return self._bytes[key]

    def times(self, fleet: Sequence[Segment]) -> "Times":
        def value(name: str, first: Segment) -> float:
            return float(getattr(self._timed(first, len(fleet)), name))

        names = [field.name for field in fields(Times)]
        return Times(*(self._line(fleet[0], partial(value, name)) for name in names))

    def _timed(self, first: Segment, runs: int) -> "Times":
        key = (first.setup, first.tasks if first.joint else first.position)
        for size, known in self._times.setdefault(key, {}).items():
            if 0.7 < size / runs < 1.4:  # near enough to share a measurement
                return replace(known, update=known.update * runs / size)
        times = self._times[key][runs] = self._cached(first, runs)
        return times

    def known(self, what: Mapping[str, Any], measure: Callable[[], list[float]]) -> list[float]:
        """Numbers that an earlier command measured on this machine, or a measurement now."""
        numbers = None if self.cache is None else self.cache.get(what)
        if numbers is None:
            numbers = measure()
            if self.cache is not None:
                self.cache.put(what, numbers)
        return numbers

    def _cached(self, first: Segment, runs: int) -> "Times":
        what = {"fleet": first.setup.fleet_key(), "tasks": first.tasks, "runs": runs}
        what |= {"compiled": True} if self.compiled else {}
        return Times(*self.known(what, lambda: list(astuple(self._measure(first, runs)))))

    def _measure(self, first: Segment, runs: int) -> "Times":
        method_class, dims = self.method(first)
        trainer = Rehearsal([first] * runs, method_class, dims, self.device)
        start, budget = time.monotonic(), max(0.05, self._left / 10)
        update = _seconds_per_update(trainer, budget)
        step = self._step_seconds(first, trainer, budget / 2)
        self._left -= time.monotonic() - start
        episodes = trainer.selection_episodes
        update *= COMPILED_TIME if self.compiled else 1
        return Times(update, step, trainer.count_retraining(), episodes)

    def _step_seconds(self, first: Segment, trainer: Trainer, budget: float) -> float:
        """Of a task of mean cost; shared by methods, since importing a simulator takes seconds."""
        env, layout = first.setup.env, trainer.policy.layout(trainer.num_tasks)

        def measure() -> list[float]:
            seconds = seconds_per_call(_stepper(first, trainer), budget) / CHUNK
            return [seconds / envs.step_cost(first.tasks[-1], env)]

        return self.known({"step": env.record(), "actor": layout.size}, measure)[0]

    def _line(self, segment: Segment, value: Callable[[Segment], float]) -> float:
        if segment.joint or segment.position in self.POSITIONS:
            return value(segment)
        low, high = self.POSITIONS[1:]
        one, other = (value(_moved(segment, position)) for position in (low, high))
        return one + (other - one) * (segment.position - low) / (high - low)


@dataclass(frozen=True)
class Times:
    update: float  # seconds, of all runs of a fleet
    step: float  # seconds of one worker, for a task of mean cost
    retraining: float  # updates at the task's end
    selection: float  # episodes of a run that choose a head


def _moved(segment: Segment, position: int) -> Segment:
    """The segment as if it were at another position of a sequence that goes on."""
    tasks = (segment.tasks * (position + 1))[: position + 1]
    length = None if segment.length is None else max(segment.length, position + 2)
    return replace(segment, tasks=tasks, length=length)


def estimate(
    plan: Plan,
    costs: Costs,
    workers: int,
    *,
    grouping: Grouping = one_group,
    measure: bool = True,
    side_by_side: int = 1,
) -> Estimate:
    """What a plan needs; time only if asked to measure, since that takes seconds."""
    needs = [_fleet_needs(fleet, costs, workers, grouping, measure) for fleet in plan.fleets]
    total = Estimate(
        steps=sum(one.steps for one in needs),
        eval_steps=sum(one.eval_steps for one in needs),
        updates=sum(one.updates for one in needs),
        host_bytes=0,
        device_bytes=_bytes_together(plan.fleets, needs, side_by_side),
        disk_bytes=sum(one.disk_bytes for one in needs),
        seconds=seconds_together(plan.fleets, needs, side_by_side) if measure else None,
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
    lanes = len(method.lanes(first.position))
    own_steps, when = method.expert_steps or first.steps, (first.steps, method.expert_steps)
    updates = count_updates(schedule, *when)
    episodes = count_evaluations(schedule, *when) * schedule.eval_episodes
    evals = episodes * horizon * len(first.tasks)
    groups = grouping(fleet)
    update_seconds = collect_seconds = pool_seconds = 0.0
    if measure:
        times = costs.times(fleet)
        updates += round(times.retraining)
        steps = own_steps + times.selection * horizon
        costs_of_steps = [envs.step_cost(s.tasks[-1], first.setup.env) for s in fleet]
        shared = runs * fmean(costs_of_steps) * times.step / workers  # by all workers
        update_seconds = updates * times.update
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
        updates=runs * updates,
        bytes=sum(map(costs.fleet_bytes, groups)),
        disk_bytes=runs * (4 * (actor + 2 * critic) + kept),
        update_seconds=update_seconds,
        collect_seconds=collect_seconds,
        pool_seconds=pool_seconds,
        groups=len(groups),
    )


def bare_trainer(fleet: Sequence[Segment], dims: Dims, method_class: type[Method[Any]]) -> Trainer:
    """A trainer as this fleet will have it, before it starts: for what a method's class decides."""
    setup = fleet[0].setup
    return Trainer(
        [fleet[0].seed],
        fleet[0].position,
        dims=dims,
        sac=setup.sac,
        network=setup.network,
        schedule=setup.schedule,
        device=torch.device("cpu"),
        length=fleet[0].length,
        architecture=method_class.architecture,
    )


def free_bytes(device: torch.device, workers: int) -> int:
    """Memory that a fleet's tensors may take here; a tenth is left for what is not counted."""
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        return round(0.9 * free) - CUDA_BYTES
    others = PROCESS_BYTES + workers * (WORKER_BYTES + 10 * ENV_BYTES)
    return round(0.9 * _available_bytes()) - others


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
        """Whether one run fits a device with its replay in the host's memory (`hostmemory`)."""
        if self.costs.device.type == "cpu":
            return False
        replay, host = self.costs.replay_bytes(fleet), torch.device("cpu")
        on_device = self.needed(fleet) - replay
        return on_device <= self.free and replay <= free_bytes(host, self.workers)


def _available_bytes() -> int:
    """Host memory that this process can still get: of the machine, or of its control group."""
    amounts = []
    with contextlib.suppress(OSError):
        lines = Path("/proc/meminfo").read_text().splitlines()
        amounts += [1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvail")]
    with contextlib.suppress(OSError, ValueError):
        group = Path("/sys/fs/cgroup")
        limit, used = ((group / f"memory.{name}").read_text() for name in ("max", "current"))
        amounts.append(int(limit) - int(used))
    if not amounts:
        amounts.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    return max(0, min(amounts))


def pick_threads(plan: Plan, costs: Costs) -> int:
    """One thread or all, whichever is faster for the largest fleet; numbers do not depend on it."""
    if costs.device.type != "cpu" or cores() == 1:
        return 1
    fleet = max(plan.fleets, key=len)
    first, choices = fleet[0], (1, cores())
    torch.set_num_threads(1)

    def measure() -> list[float]:
        trainer, seconds = Rehearsal(fleet, *costs.method(first), costs.device), []
        for threads in choices:
            torch.set_num_threads(threads)
            seconds.append(seconds_per_call(partial(trainer.train, 1), 0.15))
        torch.set_num_threads(1)  # part of what the cache knows numbers by
        return seconds

    what = {"threads": choices, "fleet": first.setup.fleet_key(), "tasks": first.tasks}
    seconds = costs.known(what | {"runs": len(fleet)}, measure)
    return choices[seconds.index(min(seconds))]


def _stepper(segment: Segment, trainer: Trainer) -> Callable[[], None]:
    """What a worker does for a run: environment and policy, CHUNK steps a call."""
    layout = trainer.policy.layout(trainer.num_tasks)
    actor = Actor(layout, np.zeros(layout.size, np.float32))
    cycle = ((segment.position, segment.tasks[-1]),)
    spec = LaneSpec(0, segment.seed, segment.position, 0, cycle, 0, ())
    lane = Lane(spec, Envs(segment.setup.env), actor)
    rows = np.zeros((CHUNK, trainer.replay.width), np.float32)

    def step() -> None:
        lane.collect(rows)

    return step


def _seconds_per_update(trainer: Trainer, budget: float) -> float:
    """On CUDA of captured updates, without those that come before the capture."""
    if trainer.device.type != "cuda":
        return seconds_per_call(partial(trainer.train, 1), budget)
    trainer.train(WARM_UP + 1)
    return seconds_per_call(partial(trainer.train, CAPTURED), budget) / CAPTURED


def seconds_per_call(action: Callable[[], None], budget: float) -> float:
    """Seconds per call, after a warm-up call, for about as long as the budget says."""
    action()
    _finish()
    start, calls = time.perf_counter(), 0
    while calls < 1 or time.perf_counter() - start < budget:
        action()
        calls += 1
    _finish()
    return (time.perf_counter() - start) / calls


def _finish() -> None:
    """Wait for what has been asked of the device."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def size(count: int) -> str:
    """Bytes for people: 512 B, 3.4 MiB, 12 GiB."""
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"


def cores() -> int:
    """Cores this process may use, which in a container or job may be fewer than there are.

    Launchers that start several processes on a machine name each one's share.
    """
    if share := os.environ.get("CWBENCH_CORES"):
        return int(share)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
