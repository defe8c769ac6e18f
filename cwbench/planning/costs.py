"""Memory and time of fleets, measured in short rehearsals."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass, fields, replace
from functools import partial
from typing import Any

import numpy as np
import torch

from cwbench import envs
from cwbench.learner.cuda_graph import WARM_UP
from cwbench.learner.method import Method
from cwbench.learner.trainer import SMALL, Trainer
from cwbench.planning.crowding import FEW_WORKERS, SLOW, crowding, random_weights
from cwbench.planning.plan import Plan
from cwbench.planning.rehearsal import Rehearsal, run_bytes, with_batches_at_hand
from cwbench.planning.sizes import bare_method, replay_bytes
from cwbench.planning.time_cache import TimeCache, code_state
from cwbench.planning.timing import seconds_per_call
from cwbench.rollout.episodes import Envs, Lane, LaneSpec
from cwbench.rollout.numpy_policy import Actor
from cwbench.rollout.pool import WorkerError
from cwbench.spec.options import rehearsal_scale, rehearsed
from cwbench.spec.segment import Segment
from cwbench.spec.transition import Dims

# What a compiled update needs of the tensors and of the time of a plain one: on an NVIDIA H200
# (docs/performance.md); on a CPU, where the time is 0.62 to 0.74 on x86 and 0.8 to 1 on ARM.
COMPILED_SHARE, COMPILED_TIME = {"cuda": 0.44, "cpu": 1.0}, {"cuda": 0.6, "cpu": 0.8}
SCRATCH_BYTES = 32 << 20  # cuBLAS's workspace on Hopper, for each stream of a group
CHUNK = 50  # steps between two readings of the clock
CAPTURED = 20  # captured updates between two readings
SELDOM = 100  # updates; what a method does less often is a small part of them, captured or not
LEARNING_STEPS = 50_000  # after which policies touch things
CLEARLY = 0.85  # of one thread's time; workers and evaluation want the other cores
MEASURE_SECONDS = 2.5  # for all times of a plan; the first ones get more of it
RETRAINING_SECONDS = 0.1  # for updates of a method's own at a task's end
# Examples and runs that time what a method does with thousands of examples, run by run.
EXAMPLES, FEW = 100, {"cpu": 1, "cuda": 16}


class Costs:
    """What fleets take, measured once for each setup and position.

    Later positions cost more, because heads and memories grow with every task by the same amount.
    So three positions are rehearsed; the others are interpolated from the last two.
    """

    POSITIONS = (0, 1, 4)
    FURTHER = 8  # for memory of a method's own architecture, which may grow faster

    def __init__(
        self,
        methods: Mapping[str, type[Method[Any]]],
        device: torch.device,
        *,
        compiled: bool = False,
        cache: TimeCache | None = None,
    ) -> None:
        self.methods, self.device, self.compiled, self.cache = methods, device, compiled, cache
        self._left = MEASURE_SECONDS
        self._bytes: dict[tuple[Any, ...], int] = {}
        self._times: dict[tuple[Any, ...], dict[int, Times]] = {}  # by fleet size
        self._crowding: dict[tuple[Any, ...], float] = {}

    def method(self, segment: Segment) -> tuple[type[Method[Any]], Dims]:
        return self.methods[segment.setup.method], envs.dims(segment.setup.env)

    def group_bytes(self, group: Sequence[Segment]) -> int:
        """Tensors of a group: replay, and for each run what it holds and what an update needs."""
        per_run = self._curve(group[0], self._run_bytes)
        streams = 2 if len(group) <= SMALL else 1
        scratch = SCRATCH_BYTES * streams if self.device.type == "cuda" else 0
        return len(group) * round(per_run) + self.replay_bytes(group) + scratch

    def replay_bytes(self, group: Sequence[Segment]) -> int:
        method_class, dims = self.method(group[0])
        return replay_bytes(group, bare_method(group[0], method_class, dims), dims)

    def own_steps(self, fleet: Sequence[Segment]) -> int:
        """Steps of each run here, without those that its expert made in a run of its own."""
        return self.expert_steps(fleet) or fleet[0].steps

    def expert_steps(self, fleet: Sequence[Segment]) -> int | None:
        """Steps an expert acts in each run, if one has learned the task."""
        return bare_method(fleet[0], *self.method(fleet[0])).expert_steps

    def _run_bytes(self, segment: Segment) -> float:
        key = (segment.setup, segment.tasks if segment.joint else segment.position)
        if key not in self._bytes:
            what = {"memory": segment.record() | {"seed": None}, "code": code_state()}
            held, working = self.known(what, 2, lambda: self._rehearsed_bytes(segment))
            share = COMPILED_SHARE[self.device.type] if self.compiled else 1
            self._bytes[key] = round(held + working * share)
        return self._bytes[key]

    def _rehearsed_bytes(self, segment: Segment) -> list[float]:
        return list(map(float, run_bytes(segment, *self.method(segment))))

    def times(self, fleet: Sequence[Segment]) -> "Times":
        def value(name: str, first: Segment) -> float:
            return float(getattr(self._timed(first, len(fleet)), name))

        names = [field.name for field in fields(Times)]
        return Times(*(self._line(fleet[0], partial(value, name)) for name in names))

    def retraining(self, fleet: Sequence[Segment]) -> float:
        """Updates at the task's end, where nothing is timed."""

        def count(first: Segment) -> float:
            here = torch.device("cpu")
            return Rehearsal([first], *self.method(first), here, memory=False).count_retraining()

        return self._line(fleet[0], count)

    def _timed(self, first: Segment, runs: int) -> "Times":
        key = (first.setup, first.tasks if first.joint else first.position, _is_last(first))
        for size, known in self._times.setdefault(key, {}).items():
            if 0.7 < size / runs < 1.4:  # near enough to share a measurement
                ratio = runs / size
                return replace(known, update=known.update * ratio, end=known.end * ratio)
        times = self._times[key][runs] = self._cached(first, runs)
        return times

    def known(
        self, what: Mapping[str, Any], count: int, measure: Callable[[], list[float]]
    ) -> list[float]:
        """Numbers that an earlier command measured on this machine, or a measurement now."""
        numbers = None if self.cache is None else self.cache.get(what, count)
        if numbers is None:
            numbers = measure()
            if self.cache is not None:
                self.cache.put(what, numbers)
        return numbers

    def _cached(self, first: Segment, runs: int) -> "Times":
        what = {"fleet": first.setup.fleet_key(), "tasks": first.tasks, "runs": runs}
        count = len(fields(Times))
        what |= {"length": first.length, "compiled": self.compiled, "numbers": count}
        return Times(*self.known(what, count, lambda: list(astuple(self._measure(first, runs)))))

    def _measure(self, first: Segment, runs: int) -> "Times":
        method_class, dims = self.method(first)
        fleet, factor = [first] * runs, 1.0
        if self.device.type == "cpu":
            fleet, factor = with_batches_at_hand(fleet)
        trainer = Rehearsal(fleet, method_class, dims, self.device, memory=False)
        start, budget = time.monotonic(), max(0.05, self._left / 10)
        update = factor * _seconds_per_update(trainer, budget)
        step = self._step_seconds(first, trainer, budget / 2)
        self._left -= time.monotonic() - start
        episodes = trainer.selection_episodes
        update *= COMPILED_TIME[self.device.type] if self.compiled else 1
        retraining, end = self._task_end(trainer, fleet[0], update)
        return Times(update, step, retraining, episodes, end)

    def _task_end(self, trainer: Rehearsal, first: Segment, update: float) -> tuple[int, float]:
        """Updates at a task's end, and seconds of all that a method does there."""
        end = trainer.time_task_end(RETRAINING_SECONDS)
        seconds = end.seconds
        if scale := rehearsal_scale(first.setup.options, EXAMPLES):
            runs = min(trainer.runs, FEW[self.device.type])
            few = Rehearsal([first] * runs, *self.method(first), self.device, memory=False)
            timed = few.time_task_end(0.0, rehearsed(first.setup.options, EXAMPLES))
            seconds = scale * timed.seconds * trainer.runs / runs
        return end.updates, seconds + end.sac_updates * update + end.own_seconds

    def _step_seconds(self, first: Segment, trainer: Trainer, budget: float) -> float:
        """For a task of mean cost; shared by methods, since importing a simulator takes seconds."""
        env, layout = first.setup.env, trainer.policy.layout(trainer.num_tasks)

        def measure() -> list[float]:
            seconds = seconds_per_call(_stepper(first, trainer), budget) / CHUNK
            return [seconds / envs.step_cost(first.tasks[-1], env)]

        what = {"step": env.record(), "actor": layout.size, "actions": "random"}
        learned = min(1.0, first.steps / LEARNING_STEPS)
        contacts = learned * (envs.SUITES[env.suite].contact_cost - 1)
        return self.known(what, 1, measure)[0] * (1 + contacts)

    def crowding(self, first: Segment, workers: int, step_seconds: float) -> float:
        """A step's time with all workers busy, over that of one alone; similar for all tasks."""
        setup = first.setup
        if workers <= FEW_WORKERS or step_seconds > SLOW:
            return 1.0

        def measure() -> list[float]:
            method_class, dims = self.method(first)
            trainer = bare_method(first, method_class, dims).trainer
            layout = trainer.policy.layout(len(first.tasks))
            return [crowding(first, layout, dims.width, workers, step_seconds)]

        key = (setup.env, setup.network, workers)
        if key not in self._crowding:
            what = {"crowding": setup.env.record(), "network": astuple(setup.network)}
            try:
                self._crowding[key] = self.known(what | {"workers": workers}, 1, measure)[0]
            except (WorkerError, OSError):  # training meets it, too, and says which task it is
                self._crowding[key] = 1.0
        return self._crowding[key]

    def _line(self, segment: Segment, value: Callable[[Segment], float]) -> float:
        if segment.joint or segment.position in self.POSITIONS:
            return value(segment)
        low, high = self.POSITIONS[1:]
        one, other = (value(_moved(segment, position)) for position in (low, high))
        return one + (other - one) * (segment.position - low) / (high - low)

    def _curve(self, segment: Segment, value: Callable[[Segment], float]) -> float:
        """The line, and the square of the position where a method has its own architecture."""
        line, (low, high) = self._line(segment, value), self.POSITIONS[1:]
        own = self.method(segment)[0].architecture_of(segment.setup.options) is not None
        if segment.joint or not own or segment.position <= low:
            return line
        further = _moved(segment, self.FURTHER)
        missed = value(further) - self._line(further, value)
        bend, known = ((p - low) * (p - high) for p in (segment.position, self.FURTHER))
        return line + missed * bend / known


@dataclass(frozen=True)
class Times:
    update: float  # seconds, of all runs of a fleet
    step: float  # seconds of one worker, for a task of mean cost
    retraining: float  # updates at the task's end
    selection: float  # episodes of a run that choose a head
    end: float = 0.0  # seconds of what the method does at the task's end


def _moved(segment: Segment, position: int) -> Segment:
    """The segment as if it were at another position of a sequence, still the last if it was."""
    tasks = (segment.tasks * (position + 1))[: position + 1]
    length = segment.length
    if length is not None:
        length = position + 1 if _is_last(segment) else max(length, position + 2)
    return replace(segment, tasks=tasks, length=length)


def _is_last(segment: Segment) -> bool:
    """Whether its method knows that no task follows."""
    return segment.length == len(segment.tasks)


def pick_threads(plan: Plan, costs: Costs, most: int) -> int:
    """One thread, or the most allowed where that is clearly faster; no number depends on it.

    Measured each time, by the largest fleet: other processes may need the cores today.
    """
    if costs.device.type != "cpu" or most == 1:
        return 1
    fleet, _ = with_batches_at_hand(max(plan.fleets, key=len))
    trainer = Rehearsal(fleet, *costs.method(fleet[0]), costs.device, memory=False)
    seconds = {}
    for threads in (most, 1):
        torch.set_num_threads(threads)
        seconds[threads] = seconds_per_call(partial(trainer.train, 1), 0.15)
    return most if seconds[most] < CLEARLY * seconds[1] else 1


def _stepper(segment: Segment, trainer: Trainer) -> Callable[[], None]:
    """What a worker does for a run: environment and policy, CHUNK steps a call."""
    layout = trainer.policy.layout(trainer.num_tasks)
    actor = Actor(layout, random_weights(layout, 1)[0])
    cycle = ((segment.position, segment.tasks[-1]),)
    spec = LaneSpec(run=0, seed=segment.seed, position=segment.position, lane=0, cycle=cycle)
    lane = Lane(spec, Envs(segment.setup.env), actor)
    rows = np.zeros((CHUNK, trainer.replay.width), np.float32)

    def step() -> None:
        lane.collect(rows)

    return step


def _seconds_per_update(trainer: Trainer, budget: float) -> float:
    """On CUDA, of captured updates, without those before the capture."""
    if trainer.device.type != "cuda":
        return seconds_per_call(partial(trainer.train, 1), budget)
    method = trainer.method
    often = method.captures_interval and 0 < method.interval <= SELDOM
    trainer.train((WARM_UP + 1) * (method.interval if often else 1))
    return seconds_per_call(partial(trainer.train, CAPTURED), budget) / CAPTURED
