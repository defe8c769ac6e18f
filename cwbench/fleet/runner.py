"""Takes the fleets of a plan through their tasks on this machine, several side by side."""

import contextlib
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from cwbench.fleet import claiming
from cwbench.fleet.claiming import Outcome, Shares
from cwbench.fleet.group import Group
from cwbench.fleet.inputs import sort_by_step
from cwbench.fleet.old_replay import MissingReplay
from cwbench.fleet.precompile import Precompiler
from cwbench.fleet.progress import Display
from cwbench.fleet.records import Provenance
from cwbench.fleet.stop import Interrupted, StopRequest
from cwbench.fleet.training import Training, lowest_free
from cwbench.learner.compiler import around_compilations
from cwbench.learner.cuda_graph import cuda_stream
from cwbench.learner.method import Method
from cwbench.planning.plan import Grouping, Plan, split_evenly
from cwbench.rollout.pool import Pool, WorkerError
from cwbench.spec import failure
from cwbench.spec.config import Gradients
from cwbench.spec.errors import UserError
from cwbench.spec.segment import Segment
from cwbench.spec.transition import Dims
from cwbench.store.claims import Claims
from cwbench.store.integrity import saved_step
from cwbench.store.results import ClaimLost, Store

Segments = Sequence[Segment]


@dataclass(frozen=True)
class Runner:
    store: Store
    methods: Mapping[str, type[Method[Any]]]
    device: torch.device
    dims: Callable[[Any], Dims]  # env config -> sizes of observations and actions
    grouping: Grouping
    compiled: bool
    snapshot_seconds: float
    provenance: Provenance  # what a record says besides what its id hashes
    gradients: Gradients = "manual"
    diagnose: bool = False
    side_by_side: int = 1  # fleets that train at the same time, at most
    compile_ahead: bool = True  # in other processes, on CUDA
    room: Callable[[Sequence[Segments]], bool] = lambda fleets: True  # whether they fit together

    def run(self, plan: Plan, pool: Pool, progress: Display) -> Outcome:
        """Train what is not claimed elsewhere; wait for the rest and continue with its children.

        Ends when every segment of the plan is done, failed, or waits for one that failed.
        """
        outcome, stop = Outcome(), StopRequest(pool.kill)
        pool.check_stop = stop.check_urgent
        with stop.listening(), self._compiling(stop), Claims() as claims:
            ours = replace(self, store=replace(self.store, token=claims.token))
            shares = Shares(ours.store, self.provenance, claims, outcome, progress)
            with self._precompiling(plan) as compiled:
                SideBySide(ours, plan, shares, pool, stop, compiled).run()
        return outcome

    def _compiling(self, stop: StopRequest) -> contextlib.AbstractContextManager[None]:
        """Let requests to stop interrupt compilations."""
        if not self.compiled:
            return contextlib.nullcontext()
        return around_compilations(stop.begin_compilation, stop.end_compilation)

    @contextlib.contextmanager
    def _precompiling(self, plan: Plan) -> Iterator[Callable[[Segments], bool]]:
        """Compile for all fleets but the first in other processes; says which have been done."""
        later = plan.fleets[1:] if self.compiled and self.compile_ahead else ()
        if not later or self.device.type != "cuda":
            yield lambda fleet: True
            return
        precompiler = Precompiler(
            later,
            grouping=self.grouping,
            method_of=self._method_of,
            device=self.device,
            gradients=self.gradients,
        )
        try:
            yield precompiler.ready
        finally:
            precompiler.close()

    def _method_of(self, segment: Segment) -> tuple[type[Method[Any]], Dims]:
        return self.methods[segment.setup.method], self.dims(segment.setup.env)

    def groups(self, training: Training, pool: Pool) -> Iterator[Group]:
        """Build the groups of a training, each for its own CUDA stream."""
        parts = self.grouping(training.segments)
        for segments, number in zip(parts, training.streams, strict=True):
            setup, stream = segments[0].setup, cuda_stream(self.device, number)
            with stream:
                group = Group(
                    segments,
                    self.methods[setup.method],
                    store=self.store,
                    pool=pool,
                    device=self.device,
                    dims=self.dims(setup.env),
                    stream=stream,
                    compiled=self.compiled,
                    gradients=self.gradients,
                    diagnose=self.diagnose,
                    check_stop=training.stop.check,
                    provenance=self.provenance,
                )
            yield group

    def put_back(self, segments: Segments, reason: str) -> dict[str, str]:
        """Mark segments to be trained again, from their snapshots if they have one."""
        unmarked: dict[str, str] = {}
        for segment in segments:
            folder = self.store.folder(segment)
            saved, step = folder.snapshot.exists(), saved_step(folder)
            then = "continues from its last snapshot" if saved else "starts its task again"
            unmarked |= self.mark([segment], "pending", f"{reason}; {then}", step=step)
        return unmarked

    def not_over(self, segments: Segments) -> list[Segment]:
        """Segments that this process has neither finished nor seen diverge."""

        def over(status: dict[str, Any]) -> bool:
            ours = status.get("writer") == self.store.token
            return ours and status["state"] in ("done", "diverged")

        return [one for one in segments if not over(self.store.folder(one).status())]

    def mark(self, segments: Segments, state: str, message: str, **content: Any) -> dict[str, str]:
        """Set the state of segments that have not ended; folder -> why, where it was impossible."""
        unmarked: dict[str, str] = {}
        for segment in segments:
            folder = self.store.folder(segment)
            try:
                if folder.state in ("running", "pending"):
                    folder.set_status(state, message=message, **content)
            except ClaimLost:
                pass
            except OSError as error:
                unmarked[segment.folder] = failure.last_line(error)
        return unmarked


class SideBySide:
    """The fleets that train now and those that wait for their parents, for room, or for others.

    Turns go to whichever fleet has its chunk, so workers collect for some fleets while others
    update. The order of turns changes no run's numbers.
    """

    def __init__(
        self,
        runner: Runner,
        plan: Plan,
        shares: Shares,
        pool: Pool,
        stop: StopRequest,
        compiled: Callable[[Segments], bool],
    ) -> None:
        self.runner, self.shares, self.pool, self.stop = runner, shares, pool, stop
        self.compiled = compiled  # whether nothing is being compiled for a fleet
        self.outcome = shares.outcome
        self.waiting: list[Segments] = list(plan.fleets)
        self.untried = {segment.id for fleet in plan.fleets for segment in fleet}
        self.trainings: list[Training] = []  # in the order of their next turns
        self.alone: set[str] = set()  # single runs that found no memory next to other fleets
        self._look_again = 0.0  # when to look whether a fleet can start

    def run(self) -> None:
        while self.trainings or (self.waiting and not self.stop):
            self._start_fleets()
            if self.trainings:
                self._give_turn()
            elif self.waiting and not self.shares.moved:
                self.shares.wait(self.waiting, self.stop)
        self.outcome.interrupted |= bool(self.waiting)
        if self.stop.urgent:
            self.pool.kill()  # closing it waits for nobody then
        elif self.outcome.failed or self.outcome.interrupted:
            self.pool.reset()

    # Starting

    def _start_fleets(self) -> None:
        """Start what is ready and fits. Looks again when a fleet ends, and every few seconds."""
        if self.stop or (self.trainings and time.monotonic() < self._look_again):
            return
        self._look_again = time.monotonic() + claiming.WAIT_SECONDS
        self.shares.moved = False
        for segments in list(self.waiting):
            full = len(self.trainings) >= self.runner.side_by_side
            if self.stop or full:
                return
            if not self._blocked(segments) and self._can_join(segments):
                self._start(segments)

    def _blocked(self, segments: Segments) -> bool:
        """Whether a parent is being trained here or comes first: a fleet starts as a whole."""
        parents = {parent.id for segment in segments for parent in segment.parents}
        return bool(parents & (self.untried | self.shares.ours))

    def _can_join(self, segments: Segments) -> bool:
        """Whether it can train next to the others; without others it always can."""
        others = [training.segments for training in self.trainings]
        if not others:
            return True
        if any(segment.id in self.alone for fleet in (segments, *others) for segment in fleet):
            return False
        return self.compiled(segments) and self.runner.room([*others, segments])

    def _start(self, segments: Segments) -> None:
        """Train those segments of a fleet that can be claimed; the rest waits."""
        self.untried.difference_update(segment.id for segment in segments)
        ours, later = self.shares.sort(segments)
        now, apart = self._at_one_step(ours)
        self.shares.release(apart)
        self.untried.update(segment.id for segment in apart)
        index = self.waiting.index(segments)
        self.waiting[index : index + 1] = [rest for rest in (apart, later) if rest]
        if now:
            for segment in now:  # its state could perhaps not be written when it was put back
                self.outcome.failed.pop(segment.folder, None)
            taken = [number for training in self.trainings for number in training.streams]
            training = Training(
                now,
                lowest_free(taken, len(self.runner.grouping(now))),
                self.shares.progress,
                self.stop,
                self.runner.snapshot_seconds,
            )
            self.trainings.append(training)
            with self._stopping(training):
                training.start(self.runner.groups(training, self.pool))
            self._end_stopped()

    def _at_one_step(self, segments: Segments) -> tuple[list[Segment], list[Segment]]:
        """Segments at the same step, which can train together, and the others.

        A segment whose inputs are damaged fails here, alone.
        """
        steps, damaged = sort_by_step(self.runner.store, segments)
        for segment, error in damaged.items():
            self.runner.mark([segment], "failed", str(error))
            self.outcome.failed[segment.folder] = str(error)
        self.shares.release(list(damaged))
        self._leave(list(damaged))
        now, *others = steps.values() or [[]]
        return now, [segment for apart in others for segment in apart]

    # Turns

    def _give_turn(self) -> None:
        """Give a turn to the first fleet whose workers are done, or wait for a worker's message."""
        for training in list(self.trainings):
            turned = False
            with self._stopping(training):
                turned = training.take_turn()
            self._end_stopped()
            if turned and training in self.trainings:
                self.trainings.remove(training)
                self.trainings.append(training)
            if turned or training not in self.trainings:
                return
        with self._stopping(*self.trainings):
            self.pool.receive()
        self._end_stopped()

    # Ending

    @contextlib.contextmanager
    def _stopping(self, *trainings: Training) -> Iterator[None]:
        """An error inside the block stops these trainings and no others."""
        try:
            yield
        except Interrupted:
            self.outcome.interrupted = True
            self._put_back(trainings, "stopped")
            self._count_unsaved(trainings)
        except torch.OutOfMemoryError as error:
            self._put_back(trainings, "out of memory")
            record = failure.describe(error, self.runner.methods.values())
            self._split(trainings, record["message"])
        except ClaimLost as error:
            self._put_back(trainings, "stopped")
            for training in trainings:
                self._count_failed(training, str(error))
        except Exception as error:
            one_of_many = len(trainings) == 1 and len(trainings[0].segments) > 1
            if isinstance(error, WorkerError | MissingReplay) and one_of_many:
                self._put_back(trainings, "a run failed")
                self._halve(trainings[0])
            else:
                self._fail(trainings, error)

    def _end_stopped(self) -> None:
        """End trainings that are over; outside of `_stopping`: a traceback refers to tensors."""
        for training in [one for one in self.trainings if not one.active]:
            self._end(training)

    def _fail(self, trainings: Sequence[Training], error: Exception) -> None:
        record = failure.describe(error, self.runner.methods.values())
        message = failure.where_it_failed(record) if record["theirs"] else record["message"]
        how = {"state": "failed", "message": record["message"], "error": record}
        for training in trainings:
            training.abandon()
            for group in training.groups:
                for run, segment in enumerate(group.segments):
                    self.runner.mark([segment], **how, **group.records.numbers(run))
            self.runner.mark(training.segments, **how)  # those of groups that were not built
            self._count_failed(training, message)
        # For users' mistakes `cwbench status --errors` shows the traceback.
        by_user = record["theirs"] or record["type"] == UserError.__name__
        if not (failure.of_the_disk(error) or by_user):
            traceback.print_exception(error)

    def _count_failed(self, training: Training, message: str) -> None:
        left = self.runner.not_over(training.segments)
        self.outcome.failed |= {segment.folder: message for segment in left}

    def _split(self, trainings: Sequence[Training], reason: str) -> None:
        """Halves of fleets that ran out of memory wait for their turn.

        So does a single run, until it can train alone; one that was alone fails.
        """
        for training in trainings:
            segments, ids = training.segments, {segment.id for segment in training.segments}
            if len(segments) == 1 and len(self.trainings) == 1:
                self.runner.mark(segments, "failed", reason)
                self.outcome.failed[segments[0].folder] = reason
                continue
            if len(segments) > 1:
                self._halve(training)
                warnings.warn(f"{reason}: a fleet of {len(segments)} runs is split", stacklevel=2)
            else:
                self.untried |= ids
                self.waiting[:0] = [segments]
                self.alone |= ids
                warnings.warn(f"{reason}: a run waits until it can train alone", stacklevel=2)

    def _halve(self, training: Training) -> None:
        """Train its halves instead, so that an environment or a file fails one run only.

        Those that are over stay so, as in a group that has ended before another one failed.
        """
        left = self.runner.not_over(training.segments)
        self.untried.update(segment.id for segment in left)
        self.waiting[:0] = [half for half in split_evenly(left, 2) if half]

    def _put_back(self, trainings: Sequence[Training], reason: str) -> None:
        """Give up trainings whose segments will be trained again."""
        for training in trainings:
            training.abandon()
            self.outcome.failed |= self.runner.put_back(training.segments, reason)

    def _count_unsaved(self, trainings: Sequence[Training]) -> None:
        for group in [group for training in trainings for group in training.groups]:
            for segment, folder in zip(group.segments, group.folders, strict=True):
                saved = saved_step(folder)
                if folder.state == "pending" and saved < group.step:
                    self.outcome.unsaved[segment.folder] = (group.step, saved)

    def _end(self, training: Training) -> None:
        self.outcome.interrupted |= bool(self.stop) and not training.finished
        self.trainings.remove(training)
        # Those that have been put back begin again.
        self.shares.progress.end(training.groups, again=self.untried)
        training.free(self.runner.device)
        failed = []
        for segment in training.segments:
            state = self.runner.store.folder(segment).state
            # Perhaps finished by the process that took it.
            lost = segment.folder in self.outcome.failed
            self.outcome.trained += state == "done" and not lost
            if state == "diverged":
                self.outcome.diverged.append(segment.folder)
            if state in ("failed", "diverged"):
                failed.append(segment)
        self.shares.release(training.segments)
        self._leave(failed)
        self._look_again = 0.0

    def _leave(self, failed: Segments) -> None:
        """Remove failed segments, and those that would have followed, from the progress."""
        if not failed:
            return
        lost = {segment.id for segment in failed}
        for segment in (one for fleet in (failed, *self.waiting) for one in fleet):  # parents first
            if segment.id in lost or any(parent.id in lost for parent in segment.parents):
                lost.add(segment.id)
                self.shares.progress.leave(segment)
