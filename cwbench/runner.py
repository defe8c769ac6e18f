"""Takes the fleets of a plan through their tasks, one after another, on this machine."""

import contextlib
import signal
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch

from cwbench.claims import Claims
from cwbench.fleet import Fleet
from cwbench.method import Method
from cwbench.plan import Plan
from cwbench.pool import Pool
from cwbench.results import Store
from cwbench.segment import Segment

GRACE_SECONDS = 3.0


class Interrupted(Exception):
    """The user, or the machine's scheduler, asked to stop."""


class StopRequest:
    """Remembers a Ctrl-C or SIGTERM. Fleets pause at the next chunk; a late one is cut short."""

    def __init__(self) -> None:
        self.since: float | None = None

    def __bool__(self) -> bool:
        return self.since is not None

    def _ask(self, *_: object) -> None:
        # A second request, or one that has waited long enough, does not wait for the chunk's end.
        self.since = time.monotonic() if self.since is None else -GRACE_SECONDS

    def check(self) -> None:
        if self.since is not None and time.monotonic() - self.since > GRACE_SECONDS:
            raise Interrupted

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        numbers = (signal.SIGINT, signal.SIGTERM)
        before = [signal.signal(number, self._ask) for number in numbers]
        try:
            yield
        finally:
            for number, handler in zip(numbers, before, strict=True):
                signal.signal(number, handler)


class Progress(Protocol):
    """What the runner tells whoever shows progress."""

    def begin(self, fleets: Sequence[Fleet]) -> None: ...
    def advance(self, fleet: Fleet) -> None: ...


@dataclass
class Outcome:
    trained: int = 0
    diverged: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)  # segment folder -> last line of the error
    skipped: int = 0  # children of segments that are not done
    elsewhere: int = 0  # segments that another process is training or has just finished
    interrupted: bool = False


@dataclass(frozen=True)
class Runner:
    store: Store
    methods: Mapping[str, type[Method[Any]]]
    device: torch.device
    obs_dim: Callable[[Any], int]  # env config -> width of an observation
    halves: int
    compiled: bool
    snapshot_seconds: float
    about: Callable[[Segment], Mapping[str, Any]]  # what a segment's record says beside its id

    def run(self, plan: Plan, pool: Pool, progress: Progress) -> Outcome:
        outcome, stop = Outcome(), StopRequest()
        with stop.listening(), Claims() as claims:
            for segments in plan.fleets:
                ready = [segment for segment in segments if self._has_parent(segment)]
                outcome.skipped += len(segments) - len(ready)
                ours = [segment for segment in ready if self._claim(segment, claims)]
                outcome.elsewhere += len(ready) - len(ours)
                if ours:
                    self._run_fleet(ours, pool, progress, stop, outcome)
                for segment in ours:
                    claims.release(self.store.folder(segment))
                if outcome.interrupted or not pool.alive:
                    break
        return outcome

    def _claim(self, segment: Segment, claims: Claims) -> bool:
        folder = self.store.folder(segment)
        folder.create(segment, self.about(segment))
        return claims.take(folder)

    def _has_parent(self, segment: Segment) -> bool:
        return segment.parent is None or self.store.folder(segment.parent).done

    def _run_fleet(
        self,
        segments: Sequence[Segment],
        pool: Pool,
        progress: Progress,
        stop: StopRequest,
        outcome: Outcome,
    ) -> None:
        fleets: list[Fleet] = []
        try:
            for part in _halves(segments, self.halves):
                fleets.append(self._fleet(part, pool, stop))
            progress.begin(fleets)
            self._drive(fleets, progress, stop)
            outcome.interrupted = bool(stop) and not all(fleet.finished for fleet in fleets)
        except Interrupted:
            outcome.interrupted = True
            _abandon(fleets)
            self._mark(segments, "pending", "stopped; continues from its last snapshot")
        except Exception as error:
            _abandon(fleets)
            self._mark(segments, "failed", _last_line(error))
            for segment in segments:
                outcome.failed[segment.folder] = _last_line(error)
            traceback.print_exc()
        for segment in segments:
            state = self.store.folder(segment).state
            outcome.trained += state == "done"
            if state == "diverged":
                outcome.diverged.append(segment.folder)

    def _fleet(self, segments: Sequence[Segment], pool: Pool, stop: StopRequest) -> Fleet:
        setup = segments[0].setup
        return Fleet(
            segments,
            self.methods[setup.method],
            store=self.store,
            pool=pool,
            device=self.device,
            obs_dim=self.obs_dim(setup.env),
            compiled=self.compiled,
            check_stop=stop.check,
        )

    def _drive(self, fleets: Sequence[Fleet], progress: Progress, stop: StopRequest) -> None:
        """Fleets take turns: while one learns, the workers collect for the other.

        On an accelerator learning is only started; asking for a fleet's next chunk waits for its
        weights. So another fleet's learning is started first, which then hides the collection.
        """
        active, waiting = list(fleets), deque[Fleet]()
        for fleet in active:
            fleet.request()
        while active:
            for fleet in list(active):
                fleet.learn()
                if waiting:
                    waiting.popleft().request()
                progress.advance(fleet)
                if fleet.finished:
                    fleet.finish()
                    progress.advance(fleet)
                    active.remove(fleet)
                elif stop:
                    fleet.pause()
                    active.remove(fleet)
                else:
                    if time.monotonic() - fleet.snapshot_time > self.snapshot_seconds:
                        fleet.snapshot()
                    waiting.append(fleet)
                if waiting and len(active) == 1:
                    waiting.popleft().request()

    def _mark(self, segments: Sequence[Segment], state: str, message: str) -> None:
        for segment in segments:
            folder = self.store.folder(segment)
            if folder.state in ("running", "pending"):
                folder.set_status(state, message=message)


def _abandon(fleets: Sequence[Fleet]) -> None:
    for fleet in fleets:
        fleet.abandon()


def _halves(segments: Sequence[Segment], halves: int) -> list[Sequence[Segment]]:
    size = -(-len(segments) // halves)
    return [segments[start : start + size] for start in range(0, len(segments), size)]


def _last_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[-1]
