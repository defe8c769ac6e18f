"""Takes the fleets of a plan through their tasks, one after another, on this machine."""

import contextlib
import gc
import signal
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch

from cwbench.fleet import snapshot
from cwbench.fleet.fleet import Fleet
from cwbench.learner.cuda_graph import side_by_side
from cwbench.learner.method import Method
from cwbench.planning.plan import Plan, Turns
from cwbench.rollout.pool import Pool, WorkerError
from cwbench.spec.config import Gradients
from cwbench.spec.segment import Segment
from cwbench.store.claims import Claims
from cwbench.store.results import Store

# How long a chunk may go on after a request to stop: one that is cut short falls back to the last
# snapshot. Schedulers announce an end earlier than people would wait.
GRACE_SECONDS = {
    signal.SIGINT: 3.0,
    signal.SIGTERM: 20.0,
    signal.SIGUSR1: 60.0,
    signal.SIGUSR2: 60.0,
}
WAIT_SECONDS = 5.0  # between looks at what other processes are training


class Interrupted(Exception):
    """The user, or the machine's scheduler, asked to stop."""


class StopRequest:
    """Remembers a Ctrl-C or a scheduler's signal. Fleets pause at the next chunk.

    A chunk that takes too long is cut short; a second Ctrl-C does not wait at all.
    """

    def __init__(self) -> None:
        self.deadline: float | None = None

    def __bool__(self) -> bool:
        return self.deadline is not None

    def _ask(self, number: int, _: object) -> None:
        if self.deadline is None:
            self.deadline = time.monotonic() + GRACE_SECONDS[signal.Signals(number)]
        elif number == signal.SIGINT:
            self.deadline = time.monotonic()

    def check(self) -> None:
        if self.deadline is not None and time.monotonic() > self.deadline:
            raise Interrupted

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        before = {number: signal.signal(number, self._ask) for number in GRACE_SECONDS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


class Progress(Protocol):
    """What the runner tells whoever shows progress."""

    def begin(self, fleets: Sequence[Fleet]) -> None: ...
    def advance(self, fleet: Fleet) -> None: ...
    def leave(self, steps: int) -> None: ...  # others did so many of the steps
    def wait(self, segments: int) -> None: ...  # for so many that others are training


@dataclass
class Outcome:
    trained: int = 0
    diverged: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)  # segment folder -> last line of the error
    skipped: int = 0  # children of segments that nobody will finish
    elsewhere: int = 0  # segments that another process finished meanwhile
    interrupted: bool = False

    @property
    def good(self) -> bool:
        return not (self.failed or self.diverged or self.skipped or self.interrupted)


@dataclass(frozen=True)
class Runner:
    store: Store
    methods: Mapping[str, type[Method[Any]]]
    device: torch.device
    dims: Callable[[Any], tuple[int, int]]  # env config -> numbers in an observation, in an action
    turns: Turns
    compiled: bool
    snapshot_seconds: float
    about: Callable[[Segment], Mapping[str, Any]]  # what a segment's record says beside its id
    gradients: Gradients = "manual"

    def run(self, plan: Plan, pool: Pool, progress: Progress) -> Outcome:
        """Train what is not claimed elsewhere; then wait for the rest and go on with its children.

        Ends when every segment of the plan is done, failed, or waits for one that failed.
        """
        outcome, stop = Outcome(), StopRequest()
        with stop.listening(), Claims() as claims:
            sharing = Sharing(self.store, self.about, claims, outcome, progress)
            fleets: Sequence[Sequence[Segment]] = plan.fleets
            while fleets and not outcome.interrupted and pool.alive:
                sharing.moved = False
                fleets = list(self._go_through(fleets, sharing, pool, stop))
                if fleets and not sharing.moved:
                    sharing.wait(fleets, stop)
                outcome.interrupted |= bool(stop and fleets)
        return outcome

    def _go_through(
        self, fleets: Sequence[Sequence[Segment]], sharing: "Sharing", pool: Pool, stop: StopRequest
    ) -> Iterator[Sequence[Segment]]:
        """Train what can be had of each fleet; yields what must be looked at again."""
        for segments in fleets:
            if sharing.outcome.interrupted or not pool.alive:
                return
            ours, others = sharing.sort(segments)
            self._run_ours(ours, pool, sharing.progress, stop, sharing.outcome)
            for segment in ours:
                sharing.claims.release(self.store.folder(segment))
            if others:
                yield others

    def _run_ours(
        self,
        segments: Sequence[Segment],
        pool: Pool,
        progress: Progress,
        stop: StopRequest,
        outcome: Outcome,
    ) -> None:
        """Runs continue from where they are, so those at different steps train apart."""
        steps: dict[int, list[Segment]] = {}
        for segment in segments:
            step = snapshot.step_of(self.store.folder(segment).snapshot)
            steps.setdefault(step, []).append(segment)
        for part in steps.values():
            outcome.interrupted |= bool(stop)
            if not outcome.interrupted and pool.alive:
                self._run_fleet(part, pool, progress, stop, outcome)

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
            for number, part in enumerate(self.turns(segments)):
                fleets.append(self._fleet(part, number, pool, stop))
            progress.begin(fleets)
            self._drive(fleets, progress, stop)
            outcome.interrupted = bool(stop) and not all(fleet.finished for fleet in fleets)
        except Interrupted:
            outcome.interrupted = True
            _abandon(fleets, pool)
            self._mark(segments, "pending", "stopped; continues from its last snapshot")
        except Exception as error:
            _abandon(fleets, pool)
            self._mark(segments, "failed", _last_line(error))
            for segment in segments:
                outcome.failed[segment.folder] = _last_line(error)
            traceback.print_exc()
        _free(fleets, self.device)
        for segment in segments:
            state = self.store.folder(segment).state
            outcome.trained += state == "done"
            if state == "diverged":
                outcome.diverged.append(segment.folder)

    def _fleet(
        self, segments: Sequence[Segment], number: int, pool: Pool, stop: StopRequest
    ) -> Fleet:
        setup, place = segments[0].setup, side_by_side(self.device, number)
        with place:
            return Fleet(
                segments,
                self.methods[setup.method],
                store=self.store,
                pool=pool,
                device=self.device,
                dims=self.dims(setup.env),
                place=place,
                compiled=self.compiled,
                gradients=self.gradients,
                check_stop=stop.check,
            )

    def _drive(self, fleets: Sequence[Fleet], progress: Progress, stop: StopRequest) -> None:
        """Fleets take turns: while one learns, the workers collect for the others.

        On an accelerator learning is only started, and the next chunk is asked for at once: workers
        begin it as soon as its weights are with them.
        """
        active = list(fleets)
        for fleet in active:
            fleet.request()
        while active:
            for fleet in list(active):
                with fleet.place:
                    goes_on = self._take_turn(fleet, progress, stop)
                if not goes_on:
                    active.remove(fleet)

    def _take_turn(self, fleet: Fleet, progress: Progress, stop: StopRequest) -> bool:
        """Learn from a chunk and ask for the next; whether there is one."""
        fleet.learn()
        progress.advance(fleet)
        if fleet.finished:
            fleet.finish()
            progress.advance(fleet)
            return False
        if stop:
            fleet.pause()
            return False
        if time.monotonic() - fleet.snapshot_time > self.snapshot_seconds:
            fleet.snapshot()
        fleet.request()
        return True

    def _mark(self, segments: Sequence[Segment], state: str, message: str) -> None:
        for segment in segments:
            folder = self.store.folder(segment)
            if folder.state in ("running", "pending"):
                folder.set_status(state, message=message)


class Sharing:
    """A plan's segments among several processes: which are ours now, which are another's."""

    def __init__(
        self,
        store: Store,
        about: Callable[[Segment], Mapping[str, Any]],
        claims: Claims,
        outcome: Outcome,
        progress: Progress,
    ) -> None:
        self.store, self.about, self.claims = store, about, claims
        self.outcome, self.progress = outcome, progress
        self.moved = False  # since the last wait
        self.watched: set[str] = set()  # segments seen in another's hands
        self.waiting: set[str] = set()  # segments still to come, here or elsewhere

    def sort(self, segments: Sequence[Segment]) -> tuple[list[Segment], list[Segment]]:
        """Those claimed for this process, and those to look at again later."""
        ours, later = [], []
        for segment in segments:
            verdict = self._judge(segment)
            self.waiting.discard(segment.id)
            if verdict == "ours":
                ours.append(segment)
            elif verdict == "later":
                later.append(segment)
                self.waiting.add(segment.id)
            else:
                self.progress.leave(segment.steps)
            self.moved |= verdict != "later"
        return ours, later

    def _judge(self, segment: Segment) -> str:
        """ours, later, or gone: nothing is left to do for it here."""
        folder = self.store.folder(segment)
        state = folder.state
        if state == "done":
            self.outcome.elsewhere += 1
            return "gone"
        if self.claims.elsewhere(folder):
            self.watched.add(segment.id)
            return "later"
        if segment.id in self.watched and state in ("failed", "diverged"):
            self.outcome.failed[segment.folder] = folder.status().get("message", state)
            return "gone"
        if segment.parent is not None and not self.store.folder(segment.parent).done:
            return self._orphan(segment.parent)
        folder.create(segment, self.about(segment))
        return "ours" if self.claims.take(folder) else "later"

    def _orphan(self, parent: Segment) -> str:
        if parent.id in self.waiting or self.claims.elsewhere(self.store.folder(parent)):
            return "later"
        if self.store.folder(parent).done:  # just now
            return "later"
        self.outcome.skipped += 1
        return "gone"

    def wait(self, fleets: Sequence[Sequence[Segment]], stop: StopRequest) -> None:
        """A while, or until asked to stop."""
        self.moved = False
        self.progress.wait(sum(map(len, fleets)))
        end = time.monotonic() + WAIT_SECONDS
        while time.monotonic() < end and not stop:
            time.sleep(min(0.2, WAIT_SECONDS))


def _abandon(fleets: Sequence[Fleet], pool: Pool) -> None:
    """Leave nothing behind that the next fleet could stumble over."""
    for fleet in fleets:
        fleet.abandon()
    with contextlib.suppress(WorkerError):  # a dead worker shows in `pool.alive`
        pool.reset()


def _free(fleets: Sequence[Fleet], device: torch.device) -> None:
    """Give back what they hold, before the next ones take as much.

    A trainer and its method refer to each other, so they would stay until Python looks for circles;
    and torch keeps a device's memory for itself, that of captured updates apart from other.
    """
    for fleet in fleets:
        fleet.free()
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()


def _last_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[-1]
