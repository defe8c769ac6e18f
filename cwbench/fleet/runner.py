"""Takes the fleets of a plan through their tasks, one after another, on this machine."""

import gc
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from cwbench.fleet import snapshot
from cwbench.fleet.fleet import Fleet
from cwbench.fleet.sharing import Outcome, Progress, Sharing
from cwbench.fleet.stop import Interrupted, StopRequest
from cwbench.learner.cuda_graph import side_by_side
from cwbench.learner.method import Method
from cwbench.planning.plan import Grouping, Plan
from cwbench.rollout.pool import Pool
from cwbench.spec.config import Gradients
from cwbench.spec.segment import Segment
from cwbench.spec.transition import Dims
from cwbench.store.claims import Claims
from cwbench.store.results import Store


@dataclass(frozen=True)
class Runner:
    store: Store
    methods: Mapping[str, type[Method[Any]]]
    device: torch.device
    dims: Callable[[Any], Dims]  # env config -> sizes of what its environments show and take
    grouping: Grouping
    compiled: bool
    snapshot_seconds: float
    about: Callable[[Segment], Mapping[str, Any]]  # what a record says besides what its id hashes
    gradients: Gradients = "manual"

    def run(self, plan: Plan, pool: Pool, progress: Progress) -> Outcome:
        """Train what is not claimed elsewhere; then wait for the rest and go on with its children.

        Ends when every segment of the plan is done, failed, or waits for one that failed.
        """
        outcome, stop = Outcome(), StopRequest(pool.kill)
        pool.check_stop = stop.check_urgent
        with stop.listening(), Claims() as claims:
            sharing = Sharing(self.store, self.about, claims, outcome, progress)
            fleets: Sequence[Sequence[Segment]] = plan.fleets
            while fleets and not outcome.interrupted:
                sharing.moved = False
                fleets = list(self._go_through(fleets, sharing, pool, stop))
                if fleets and not sharing.moved:
                    sharing.wait(fleets, stop)
                outcome.interrupted |= bool(stop and fleets)
        return outcome

    def _go_through(
        self, fleets: Sequence[Sequence[Segment]], sharing: Sharing, pool: Pool, stop: StopRequest
    ) -> Iterator[Sequence[Segment]]:
        """Train what can be had of each fleet; yields what must be looked at again."""
        for segments in fleets:
            if sharing.outcome.interrupted:
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
        for group in steps.values():
            outcome.interrupted |= bool(stop)
            if not outcome.interrupted:
                self._run_fleet(group, pool, progress, stop, outcome)

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
            for number, group in enumerate(self.grouping(segments)):
                fleets.append(self._fleet(group, number, pool, stop))
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
        setup, stream = segments[0].setup, side_by_side(self.device, number)
        with stream:
            return Fleet(
                segments,
                self.methods[setup.method],
                store=self.store,
                pool=pool,
                device=self.device,
                dims=self.dims(setup.env),
                stream=stream,
                compiled=self.compiled,
                gradients=self.gradients,
                check_stop=stop.check,
            )

    def _drive(self, fleets: Sequence[Fleet], progress: Progress, stop: StopRequest) -> None:
        """Fleets alternate: while one updates, the workers collect for the others.

        On an accelerator updates are only started, and the next chunk is requested at once: workers
        begin it as soon as its weights have arrived.
        """
        active = list(fleets)
        for fleet in active:
            fleet.request()
        while active:
            for fleet in list(active):
                with fleet.stream:
                    goes_on = self._advance(fleet, progress, stop)
                if not goes_on:
                    active.remove(fleet)

    def _advance(self, fleet: Fleet, progress: Progress, stop: StopRequest) -> bool:
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


def _abandon(fleets: Sequence[Fleet], pool: Pool) -> None:
    """Leave nothing behind that the next fleet could stumble over."""
    for fleet in fleets:
        fleet.abandon()
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
