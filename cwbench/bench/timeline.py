"""When the trainer of some groups updates, when workers collect, and who waits for whom."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import torch

from cwbench.fleet.group import Group
from cwbench.fleet.progress import Display
from cwbench.rollout.pool import Pool


@dataclass(frozen=True)
class Span:
    row: str  # learn, collect or wait
    group: int
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


@dataclass
class Cycle:
    """One chunk of a group, from the first step of a worker to the end of its updates."""

    group: int
    steps: int  # of each run
    collect_start: float
    collect_end: float
    taken: float  # when the trainer turned to it
    evaluation: float = 0.0  # seconds, of starting one
    updates: list[Any] = field(default_factory=list)  # the moments of their start and end


PARTS = ("collect", "waiting", "evaluation", "hand_over", "updates", "weights_back")


class Timeline(Display):
    """Watches the groups of one position, from step `warm` of each until the first is done."""

    def __init__(self, pool: Pool, position: int, warm: int, count: int) -> None:
        """`count`: how many groups there will be."""
        self.pool, self.position, self.warm, self.count = pool, position, warm, count
        self.groups: list[Group] = []
        self.created = time.monotonic()
        self.started = self.ended = 0.0
        self.built = self.first_update = 0.0  # seconds since the creation
        self.device_bytes = 0  # the most that was taken when a group was done
        self._cycles: list[Cycle] = []
        self._waits: list[Span] = []

    def begin(self, groups: Sequence[Group]) -> None:
        if groups[0].position != self.position:
            return
        if not self.groups:
            self._device = groups[0].trainer.device
            self._clock = Clock(self._device)
            self._watch_pool()
        for group in groups:
            self._watch(len(self.groups), group)
            self.groups.append(group)
        self.built = self.built or time.monotonic() - self.created

    def _watch_pool(self) -> None:
        """Time the waits for workers: the only place where the trainer waits for them."""
        receive = self.pool.receive

        def timed() -> None:
            start = time.monotonic()
            receive()
            self._waits.append(Span("wait", 0, start, time.monotonic()))

        self.pool.receive = timed  # type: ignore[method-assign]

    def _watch(self, number: int, group: Group) -> None:
        """Time the parts of its turns."""
        learn, evaluate, train = group.learn, group.evaluate, group.trainer.train

        def timed_learn(**options: Any) -> None:
            before = group.step
            self._cycles.append(self._new_cycle(number, group))
            learn(**options)
            self._cycles[-1].steps = group.step - before

        def timed_evaluate() -> None:
            start = time.monotonic()
            evaluate()
            self._cycles[-1].evaluation += time.monotonic() - start

        def timed_train(updates: int) -> None:
            start = self._clock.now()
            train(updates)
            if updates and not self.first_update:
                self._settle()
                self.first_update = time.monotonic() - self.created
            self._cycles[-1].updates = [start, self._clock.now()]

        group.learn = timed_learn  # type: ignore[method-assign]
        group.evaluate = timed_evaluate  # type: ignore[method-assign]
        group.trainer.train = timed_train  # type: ignore[method-assign]

    def _new_cycle(self, number: int, group: Group) -> Cycle:
        """A chunk that has just arrived; its spans are the last ones of its group."""
        count, spans = group.collector.workers, list[tuple[float, float]]()
        for key, start, end in reversed(self.pool.collect_spans):
            if key == group.collector.key:
                spans.append((start, end))
            if len(spans) == count:
                break
        starts, ends = zip(*spans, strict=True)
        return Cycle(number, 0, min(starts), max(ends), time.monotonic())

    def advance(self, group: Group) -> None:
        if group not in self.groups:
            return
        if group.finished and self._clock.cuda:
            self.device_bytes = max(self.device_bytes, _taken(self._device))
        warm = all(one.step >= self.warm for one in self.groups)
        if not self.started and warm and len(self.groups) == self.count:
            self._settle()
            self.started = time.monotonic()
            self._first = [one.step for one in self.groups]
            self._before = self._busy_workers()
        if self.started and not self.ended and group.finished:  # others wait for its last episodes
            self._settle()
            self.ended = time.monotonic()
            self._last = [one.step for one in self.groups]
            self._after = self._busy_workers()

    def _busy_workers(self) -> tuple[float, float]:
        return self.pool.collection_seconds, self.pool.evaluation_seconds

    def _settle(self) -> None:
        if self._clock.cuda:
            torch.cuda.synchronize()

    # What was seen

    def spans(self) -> list[Span]:
        """Everything between the start and the end of watching."""
        keys = {group.collector.key: number for number, group in enumerate(self.groups)}
        learning = [
            Span("learn", cycle.group, *map(self._clock.seconds, cycle.updates))
            for cycle in self._cycles
            if cycle.updates
        ]
        collecting = [
            Span("collect", keys[key], start, end)
            for key, start, end in self.pool.collect_spans
            if key in keys
        ]
        spans = [*learning, *collecting, *self._waits]
        return [s for s in spans if s.start >= self.started and s.end <= self.ended]

    def parts(self) -> dict[str, float]:
        """Microseconds of each part of a cycle per step of a run; means over all groups.

        Without a lag they follow each other: their sum is the time of a step.
        """
        found, steps = dict.fromkeys(PARTS, 0.0), 0
        for number in range(len(self.groups)):
            cycles = [c for c in self._cycles if c.group == number and self._watched(c)]
            for cycle, following in pairwise(cycles):
                steps += cycle.steps
                for part, seconds in self._parts(cycle, following).items():
                    found[part] += seconds
        return {part: 1e6 * seconds / steps for part, seconds in found.items()} if steps else {}

    def _watched(self, cycle: Cycle) -> bool:
        return bool(cycle.updates) and self.started <= cycle.taken <= self.ended

    def _parts(self, cycle: Cycle, following: Cycle) -> dict[str, float]:
        """Seconds of each part."""
        begun, done = map(self._clock.seconds, cycle.updates)
        seconds = (
            cycle.collect_end - cycle.collect_start,
            cycle.taken - cycle.collect_end,
            cycle.evaluation,
            begun - cycle.taken - cycle.evaluation,
            done - begun,
            max(0.0, following.collect_start - done),
        )
        return dict(zip(PARTS, seconds, strict=True))

    def summary(self) -> dict[str, Any]:
        wall = self.ended - self.started
        done = zip(self.groups, self._first, self._last, strict=True)
        steps = sum((last - first) * group.runs for group, first, last in done)
        spans = self.spans()
        learning, waiting = (covered([s for s in spans if s.row == r]) for r in ("learn", "wait"))
        workers = len(self.pool.workers) * wall
        pairs = zip(self._before, self._after, strict=True)
        collecting, evaluating = ((after - before) / workers for before, after in pairs)
        return {
            "runs": sum(group.runs for group in self.groups),
            "groups": len(self.groups),
            "workers": len(self.pool.workers),
            "seconds": wall,
            "steps_per_s": steps / wall,
            "learning": learning / wall,
            "waiting": waiting / wall,
            "collecting": collecting,
            "evaluating": evaluating,
            "us_per_step": self.parts(),
        }


def covered(spans: Sequence[Span]) -> float:
    """Seconds in which at least one of them is running."""
    total, reached = 0.0, -math.inf
    for span in sorted(spans, key=lambda span: span.start):
        total += max(0.0, span.end - max(span.start, reached))
        reached = max(reached, span.end)
    return total


def _taken(device: torch.device) -> int:
    """Memory of a device that is not free; torch's allocator keeps what it once had."""
    free, total = torch.cuda.mem_get_info(device)
    return total - free
