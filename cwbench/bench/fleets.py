"""Where the time of fleets goes: when the trainer updates, workers collect, and who waits."""

import math
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from cwbench import envs
from cwbench.fleet.fleet import Fleet
from cwbench.fleet.progress import Quiet
from cwbench.fleet.runner import Runner
from cwbench.learner.method import Method
from cwbench.planning.estimate import Costs, estimate
from cwbench.planning.plan import Grouping, Run, groups_on_cuda, make_plan, one_group
from cwbench.rollout.pool import Pool
from cwbench.spec.segment import Setup, segments_of_run
from cwbench.spec.tasks import CW_TASKS
from cwbench.store.results import Store

GIB = 1 << 30
WARM_STEPS = 600  # before a fleet's clock starts: capture and compilation are done


@dataclass(frozen=True)
class Span:
    row: str  # learn, collect or wait
    fleet: int
    start: float  # seconds
    end: float


class Clock:
    """Times of events on the device, on this process's clock; on a CPU an event is now."""

    def __init__(self, device: torch.device) -> None:
        self.cuda = device.type == "cuda"
        if self.cuda:
            self.base = self._event()
            torch.cuda.synchronize()
        self.start = time.monotonic()

    def _event(self) -> Any:
        event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        event.record()
        return event

    def now(self) -> Any:
        """The moment when the device gets here; read it with `seconds` after a synchronisation."""
        return self._event() if self.cuda else time.monotonic()

    def seconds(self, moment: Any) -> float:
        if not self.cuda:
            return float(moment)
        return self.start + float(self.base.elapsed_time(moment)) / 1e3


class Timeline(Quiet):
    """Watches fleets of one position, from step `warm` of each until the first is done."""

    def __init__(self, pool: Pool, position: int, warm: int) -> None:
        self.pool, self.position, self.warm = pool, position, warm
        self.fleets: list[Fleet] = []
        self.created = time.monotonic()
        self.started = self.ended = 0.0
        self.first_update = 0.0
        self.device_bytes = 0  # the most that was taken when a fleet was done
        self._moments: list[tuple[int, Any, Any]] = []
        self._waits: list[Span] = []

    def begin(self, fleets: Sequence[Fleet]) -> None:
        if fleets[0].position != self.position or self.fleets:
            return
        self.fleets = list(fleets)
        self._device = fleets[0].trainer.device
        self._clock = Clock(self._device)
        for number, fleet in enumerate(fleets):
            self._watch(number, fleet)

    def _watch(self, number: int, fleet: Fleet) -> None:
        """Time updates and the waits for workers."""
        train, receive = fleet.trainer.train, fleet.collector.receive

        def timed_train(updates: int) -> None:
            start = self._clock.now()
            train(updates)
            if updates and not self.first_update:
                self._settle()
                self.first_update = time.monotonic() - self.created
            self._moments.append((number, start, self._clock.now()))

        def timed_receive() -> Any:
            start = time.monotonic()
            result = receive()
            self._waits.append(Span("wait", number, start, time.monotonic()))
            return result

        fleet.trainer.train = timed_train  # type: ignore[method-assign]
        fleet.collector.receive = timed_receive  # type: ignore[method-assign]

    def advance(self, fleet: Fleet) -> None:
        if fleet not in self.fleets:
            return
        if fleet.finished and self._clock.cuda:
            self.device_bytes = max(self.device_bytes, _taken(self._device))
        if not self.started and all(f.step >= self.warm for f in self.fleets):
            self._settle()
            self.started = time.monotonic()
            self._first = [f.step for f in self.fleets]
            self._before = self._busy_workers()
        if self.started and not self.ended and fleet.finished:  # others wait for its last episodes
            self._settle()
            self.ended = time.monotonic()
            self._last = [f.step for f in self.fleets]
            self._after = self._busy_workers()

    def _busy_workers(self) -> tuple[float, float]:
        return self.pool.collection_seconds, self.pool.evaluation_seconds

    def _settle(self) -> None:
        if self._clock.cuda:
            torch.cuda.synchronize()

    # What was seen

    def spans(self) -> list[Span]:
        """Everything between the start and the end of watching."""
        keys = {fleet.collector.key: number for number, fleet in enumerate(self.fleets)}
        learning = [
            Span("learn", number, self._clock.seconds(start), self._clock.seconds(end))
            for number, start, end in self._moments
        ]
        collecting = [
            Span("collect", keys[key], start, end)
            for key, start, end in self.pool.collect_spans
            if key in keys
        ]
        spans = [*learning, *collecting, *self._waits]
        return [s for s in spans if s.start >= self.started and s.end <= self.ended]

    def summary(self) -> dict[str, float]:
        wall = self.ended - self.started
        done = zip(self.fleets, self._first, self._last, strict=True)
        steps = sum((last - first) * fleet.runs for fleet, first, last in done)
        spans = self.spans()
        learning, waiting = (covered([s for s in spans if s.row == r]) for r in ("learn", "wait"))
        workers = len(self.pool.workers) * wall
        pairs = zip(self._before, self._after, strict=True)
        collecting, evaluating = ((after - before) / workers for before, after in pairs)
        return {
            "runs": sum(fleet.runs for fleet in self.fleets),
            "workers": len(self.pool.workers),
            "seconds_to_first_updates": self.first_update,
            "seconds": wall,
            "steps_per_s": steps / wall,
            "learning": learning / wall,
            "waiting": waiting / wall,
            "collecting": collecting,
            "evaluating": evaluating,
        }


def covered(spans: Sequence[Span]) -> float:
    """Seconds in which at least one of them is running."""
    total, reached = 0.0, -math.inf
    for span in sorted(spans, key=lambda span: span.start):
        total += max(0.0, span.end - max(span.start, reached))
        reached = max(reached, span.end)
    return total


def fleet_speed(
    setup: Setup,
    method: type[Method[Any]],
    runs: int,
    length: int,
    device: torch.device,
    workers: int,
    *,
    compiled: bool,
    grouping: Grouping | None = None,
) -> tuple[dict[str, float], list[Span]]:
    """Train runs on different tasks; statistics of their last task (see `Timeline`)."""
    count = len(CW_TASKS)
    wanted = []
    for number in range(runs):
        stride = 1 + number // count  # all tasks are first ones, and all pairs beginnings
        tasks = tuple(CW_TASKS[(number + place * stride) % count] for place in range(length))
        segments = segments_of_run(
            setup,
            number // count ** min(length, 2),
            tasks,
            needs_length=method.needs_length,
            joint=method.trains_jointly,
        )
        wanted.append(Run("bench", tasks, setup.method, "", tuple(segments)))
    cuda = device.type == "cuda"
    with tempfile.TemporaryDirectory() as folder, Pool(workers) as pool:
        store = Store(Path(folder))
        runner = Runner(
            store,
            {setup.method: method},
            device,
            envs.dims,
            grouping=grouping or (groups_on_cuda if cuda else one_group),
            compiled=compiled,
            snapshot_seconds=float("inf"),
            about=lambda segment: {},
        )
        timeline = Timeline(pool, length - 1, WARM_STEPS)
        plan = make_plan(wanted, store, runs, lambda segment: 0)
        outcome = runner.run(plan, pool, timeline)
        if outcome.failed:
            raise RuntimeError(next(iter(outcome.failed.values())))
        seen = timeline.summary()
        if cuda:
            costs = Costs({setup.method: method}, device, compiled=compiled)
            planned = estimate(plan, costs, workers, grouping=runner.grouping, measure=False)
            seen |= {
                "device_gib": timeline.device_bytes / GIB,
                "device_gib_planned": planned.device_bytes / GIB,
            }
        return seen, timeline.spans()


def _taken(device: torch.device) -> int:
    """Memory of a device that is not free; torch's allocator keeps what it once had."""
    free, total = torch.cuda.mem_get_info(device)
    return total - free
