"""A group of a fleet: R segments at one position in one trainer, each leaving its own folder.

A small fleet is one group. On CUDA a large one has several (`planning.plan.groups_on_cuda`): while
one updates, workers collect for the others.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import dropwhile
from typing import Any

import numpy as np
import torch
from torch import Tensor

from cwbench.fleet import experts, lanes, old_replay, snapshot
from cwbench.fleet.diagnostics import Diagnostics
from cwbench.fleet.evaluation import Evaluator
from cwbench.fleet.records import Provenance, Records
from cwbench.fleet.state import GroupState, RunState
from cwbench.fleet.weight_sync import WeightPublisher
from cwbench.learner.method import Method, ask
from cwbench.learner.replay import Replay
from cwbench.learner.trainer import Trainer
from cwbench.planning.sizes import replay_shape
from cwbench.rollout.collector import Collector
from cwbench.rollout.episodes import EvalResult
from cwbench.rollout.pool import Pool
from cwbench.spec.config import Gradients
from cwbench.spec.schedule import Milestone, longest_chunk, milestones
from cwbench.spec.segment import Segment, Setup
from cwbench.spec.transition import Dims
from cwbench.store import checkpoint, files
from cwbench.store.integrity import TABLES
from cwbench.store.results import RETRAINING, Store

RECORD_SECONDS = 30.0  # between records of how far the runs are, if no evaluation writes any
REPORT_SECONDS = 10.0  # between records of how far a method's retraining is


class Group:
    def __init__(
        self,
        segments: Sequence[Segment],
        method_class: type[Method[Any]],
        *,
        store: Store,
        pool: Pool,
        device: torch.device,
        dims: Dims,
        stream: AbstractContextManager[Any] | None = None,
        compiled: bool = False,
        gradients: Gradients = "manual",
        diagnose: bool = False,
        check_stop: Callable[[bool], None] = lambda retraining: None,
        provenance: Provenance = lambda segment: {},
    ) -> None:
        self.segments, self.store, self.pool = list(segments), store, pool
        self.stream = stream or nullcontext()  # CUDA stream of all work of this group
        self.folders = [store.folder(segment) for segment in segments]
        self.state = GroupState([RunState() for _ in segments])
        self.trainer = Trainer.of_segments(
            segments,
            dims=dims,
            device=device,
            compiled=compiled,
            gradients=gradients,
            architecture=method_class.architecture_of(self.setup.options),
        )
        self.method = method_class(self.setup.options, self.trainer)
        self.method.assign([segment.setup.options for segment in segments])
        self.records = Records(self.segments, self.folders, self.state, self.trainer, provenance)
        self.lane_positions = ask(self.method, "lanes", self.position)
        self.layout = self.trainer.policy.layout(self.position + 1)
        self.evaluator = self._make_evaluator()
        self.abandoned = self._closed = self._evaluation_due = False
        self.collecting = False  # a chunk has been asked for
        self.settled = False  # past its first updates in this process, which compile
        self.retraining: tuple[int, int] | None = None  # updates made and asked for
        self._tell: Callable[[Group], None] | None = None  # called while a method retrains
        self._next_report = 0.0  # when to say how far retraining is
        self.ended = False  # the method has had its turn at the task's end
        self.snapshot_time = time.monotonic()
        self._check_stop = check_stop
        self.diagnostics: Diagnostics | None = None
        if diagnose and not self.segments[0].joint:
            parts = (store, self.segments, self.folders, self.trainer, self.method)
            self.diagnostics = Diagnostics(*parts)
        try:
            self._begin()
        except BaseException:  # an interrupt, too
            self.evaluator.close()  # with what it shares for heads that were tried
            raise

    def _make_evaluator(self) -> Evaluator:
        return Evaluator(
            self.pool,
            self.segments,
            counts=[run.counts for run in self.state.runs],
            layout=self.layout,
            policy=lambda position: self._flat(ask(self.method, "evaluated_weights", position)),
            one_policy=self._one_policy,
            evaluated=self._evaluated,
        )

    @property
    def _one_policy(self) -> bool:
        """Whether one actor is evaluated for all positions."""
        own, base = type(self.method), Method
        acting = own.policy_weights is base.policy_weights
        return acting and own.evaluated_weights is base.evaluated_weights

    @property
    def setup(self) -> Setup:
        """Of the first run; the others differ at most in per-run options."""
        return self.segments[0].setup

    @property
    def position(self) -> int:
        return self.segments[0].position

    @property
    def steps(self) -> int:
        """Environment steps of each run in the whole segment."""
        return self.segments[0].steps

    @property
    def runs(self) -> int:
        return len(self.segments)

    @property
    def step(self) -> int:
        return self.state.step

    # Beginning and continuing

    def _begin(self) -> None:
        self._inherit()
        interrupted = all(folder.snapshot.exists() for folder in self.folders)
        lane_states = self._restore() if interrupted else self._start()
        todo = milestones(self.setup.schedule, self.steps, self.method.expert_steps)
        self._milestones = dropwhile(lambda milestone: milestone.step <= self.step, todo)
        self._next: Milestone | None = next(self._milestones)
        lag, policy = self.setup.schedule.lag, self._acting_policy()
        self.state.acting.extend([policy] * (1 + lag - len(self.state.acting)))
        exploration = ask(self.method, "exploration", self.position)
        self.records.begin_session()
        self._recorded()
        self.collector = Collector(  # late: what fails before it occupies no worker
            self.pool,
            lanes.specs(self.segments, self.lane_positions, exploration),
            self.layout,
            self.setup.env,
            runs=self.runs,
            longest=longest_chunk(self.setup.schedule, self.steps),
            width=self.trainer.replay.width,
            states=lane_states,
        )
        weights, version = self.collector.weights.array, self.collector.version.array
        try:
            self.publisher = WeightPublisher(weights, version, self.trainer.device)
        except BaseException:  # there may be no memory for it on the device
            self.collector.close()
            raise

    def _inherit(self) -> None:
        """Take over what the segments before this one ended with."""
        parents = [segment.parent for segment in self.segments]
        inherited, method_state = None, {}
        if parents[0] is not None:
            ends = [checkpoint.load(self.store.folder(p).end)[0] for p in parents if p]
            tensors = checkpoint.stack(ends)
            inherited = checkpoint.under("trainer", tensors)
            method_state = checkpoint.under("method", tensors)
        self.trainer.begin(
            self.method,
            self._replay(),
            inherited=inherited,
            try_heads=self._try_heads,
            log_retraining=self._evaluate_retraining,
            check_stop=self._between_updates,
        )
        self.method.load_state(method_state)
        if self.method.experts:
            self.method.use_expert(experts.actors(self.store, self.segments))

    def _restore(self) -> snapshot.LaneStates:
        parts = (self.state, self.trainer, self.method)
        return snapshot.restore(*parts, folders=self.folders, lanes=len(self.lane_positions))

    def _start(self) -> snapshot.LaneStates:
        """Begin the task; what an attempt without a snapshot wrote is cut off."""
        for folder in self.folders:
            for table in TABLES:
                folder.truncate(table, 0)
        self._follow_experts()
        self.method.begin_task(self.position)
        self.trainer.reset_optimizer()
        return {}

    def _follow_experts(self) -> None:
        """Begin where experts have learned the task, if the method has them."""
        if self.method.expert_steps is not None:
            self.state.step = self.steps - self.method.expert_steps
            for segment in self.segments:
                experts.copy_tables(self.store, segment)

    def _replay(self) -> Replay:
        shape = replay_shape(self.method, self.segments[0])
        limit = self.method.rows_per_task(len(shape.old)) if shape.old else None
        old = {p: old_replay.load(self.store, self.segments, p, limit) for p in shape.old}
        trainer = self.trainer
        parts = (self.runs, shape.capacity, trainer.dims, trainer.streams)
        return Replay(*parts, live=shape.live, old=old, fast=trainer.fast)

    # Collecting and learning

    @property
    def finished(self) -> bool:
        """Whether all steps are done; the end of the task may still have to come."""
        return self._next is None

    @property
    def ready(self) -> bool:
        """Whether workers have done what the next turn needs. WorkerError if they never will."""
        self.publisher.check()
        evaluated = self.evaluator.idle
        if self.finished:
            return evaluated
        return self.collector.complete and (evaluated or not self._evaluation_due)

    def request(self) -> None:
        """Ask for the next chunk, and send out the weights that collect it."""
        assert self._next is not None
        self.publisher.start(self.state.acting.popleft())
        self.collector.request(self._next.step - self.step, self.publisher.version)
        self.collecting = True

    def learn(self, *, pause: bool = False) -> None:
        """Receive the requested chunk and learn from it.

        With a lag the next chunk is requested before the updates, unless a pause follows them: a
        snapshot cannot hold a chunk in progress.

        On an accelerator this only starts the work: code that needs its result waits for it. So an
        evaluation that is due begins with the next chunk, or before a snapshot.
        """
        milestone = self._next
        assert milestone is not None
        self.publisher.wait()
        self._evaluate_if_due()
        chunk, episodes = self.collector.receive()
        self.collecting = False
        rows = torch.from_numpy(np.array(chunk))
        self.state.advance(milestone.step, episodes, len(self.lane_positions))
        self._next = next(self._milestones, None)
        if self.setup.schedule.lag and not pause and not self.finished:
            self.request()
        self._store_chunk(rows)
        self.trainer.train(milestone.updates)
        self.settled |= milestone.updates > 0 or self.method.expert_steps is not None
        self.state.acting.append(self._acting_policy())
        self._evaluation_due = milestone.evaluate and not self.finished
        if time.monotonic() >= self._next_record:
            self.records.set_progress()
            self._recorded()

    def _recorded(self) -> None:
        # A file takes milliseconds: less than half a per cent of the time.
        self._next_record = time.monotonic() + max(RECORD_SECONDS, self.runs)

    def _store_chunk(self, rows: Tensor) -> None:
        """The transitions [lanes, n, F] of the last n steps."""
        rows = rows.pin_memory() if self.trainer.device.type == "cuda" else rows
        replay, horizon = self.trainer.replay, self.setup.env.horizon
        lanes.store(replay, rows, self.lane_positions, self.step - rows.shape[1], horizon)

    def end_task(self, tell: Callable[["Group"], None] = lambda group: None) -> None:
        """The method's turn at the end of the task; the last evaluation begins.

        `tell` is called every ten seconds while the method retrains.
        """
        for folder in self.folders:
            folder.truncate(RETRAINING, 0)  # of an attempt that was interrupted
        self._tell = tell
        self.method.end_task(self.position)
        self.retraining = None
        self.evaluate()
        self.ended = True

    def _between_updates(self) -> None:
        """Stop if it is time to; say now and then how far the method is, if it retrains."""
        self.retraining = self.trainer.retraining
        self._check_stop(self.retraining is not None)
        if self._tell and self.retraining and time.monotonic() >= self._next_report:
            self._next_report = time.monotonic() + REPORT_SECONDS
            self.records.set_progress(self.retraining)
            self._tell(self)

    def finish(self) -> None:
        """After the last evaluation: write what children need."""
        self.evaluator.wait()
        self._close()
        if self.diagnostics:
            self.diagnostics.keep_probe()
        tensors = snapshot.tensors(self.trainer, self.method)
        # Evaluations look at the actor only. A method may keep what is not finite.
        finite = checkpoint.finite(checkpoint.under("trainer", tensors))
        kept = sum(x[0].nbytes for x in self.method.state().values())
        for run, folder in enumerate(self.folders):
            if self.state.runs[run].diverged or not finite[run]:
                self.records.set_status(run, "diverged")
                continue
            folder.check_claim()
            self.state.runs[run].counts.method_bytes = kept
            if self.method.keeps_replay:
                limit = self.method.rows_per_task(self.position + 1)
                old_replay.keep(folder, self.trainer.replay, self.position, run, limit)
            checkpoint.save(folder.end, checkpoint.one_run(tensors, run), {"step": self.step})
            self.records.set_status(run, "done", checksums=folder.seal())
            files.sync(folder.path)
            snapshot.discard(folder.snapshot)

    def _acting_policy(self) -> Tensor:
        """Of every run, as flat vectors: [R, P]."""
        return self._flat(ask(self.method, "policy_weights", self.position))

    def _flat(self, weights: Mapping[str, Tensor]) -> Tensor:
        return torch.cat([weights[name].flatten(1) for name in self.layout.shapes], 1)

    def _evaluate_if_due(self) -> None:
        """As late as possible: it reads from the device, and waits for what is under way there."""
        if self._evaluation_due:
            self.evaluate()

    def evaluate(self) -> None:
        """Start the evaluation of every task seen; results are written when all are there."""
        self._evaluation_due = False
        if self.method.expert_steps is None:  # else it is the expert's table
            self.records.add_training_row()
        if self.diagnostics:
            self.diagnostics.write(self.step)
        finite = self.evaluator.start(self.step)
        for run, good in zip(self.state.runs, finite, strict=True):
            run.diverged |= not good

    def _try_heads(self, position: int, heads: Sequence[int], episodes: int) -> Tensor:
        return self.evaluator.try_heads(position, heads, episodes).to(self.trainer.device)

    def _evaluate_retraining(self, updates: int) -> None:
        """Evaluate every task after some of the updates that a method makes at a task's end."""

        def evaluated(_: int, run: int, results: Sequence[EvalResult]) -> None:
            self.records.add_retraining(updates, run, results)

        self.evaluator.start(self.step + updates, evaluated)
        self.evaluator.wait()

    def _evaluated(self, step: int, run: int, results: Sequence[EvalResult]) -> None:
        """All of a run's results at a step: one per position."""
        if not self.abandoned:
            self.records.add_evaluation(step, run, results)
            self._recorded()

    # Pausing

    def snapshot(self) -> None:
        """Save the middle of the segment, so that continuing gives the same numbers."""
        self._evaluate_if_due()
        self.evaluator.wait()
        parts = (self.state, self.trainer, self.method)
        snapshot.save(*parts, folders=self.folders, lanes=self.collector.save())
        self.snapshot_time = time.monotonic()

    def pause(self) -> None:
        self.snapshot()
        self._close()
        for run in range(self.runs):
            state = "diverged" if self.state.runs[run].diverged else "pending"
            self.records.set_status(run, state, f"interrupted at step {self.step}")

    def abandon(self) -> None:
        """Release the workers and write nothing more."""
        self.abandoned = True
        self._close()

    def _close(self) -> None:
        """Release the workers and the memory shared with them, once."""
        if not self._closed:
            self._closed = True
            for part in (self.publisher, self.collector, self.evaluator):
                part.close()

    def free(self) -> None:
        """Release all tensors; what progress shows can still be read."""
        self.diagnostics = None
        del self.trainer, self.method, self.records
