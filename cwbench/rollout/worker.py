"""Worker processes: they roll out chunks and evaluation episodes (`episodes.py`).

A worker answers requests from one pipe. A chunk is collected as soon as its weights are in shared
memory. Collecting comes first; evaluations advance by one step of one environment whenever nothing
can be collected, so they fill the time in which the trainer trains.
"""

import pickle
import select
import time
import traceback
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection

import numpy as np
from numpy.typing import NDArray

from cwbench.rollout.episodes import Envs, Episode, Evaluation, Lane, Make
from cwbench.rollout.messages import (
    Answer,
    Close,
    Collect,
    Collected,
    Emptied,
    Evaluate,
    Evaluated,
    Failed,
    Open,
    Request,
    Reset,
    Save,
    Saved,
    Stop,
)
from cwbench.rollout.numpy_policy import Actor
from cwbench.rollout.shared_memory import ArrayRef
from cwbench.rollout.signals import ignore_signals
from cwbench.spec.actor_layout import Floats
from cwbench.spec.config import EnvConfig
from cwbench.spec.errors import UserError
from cwbench.spec.failure import in_called_code, where_it_failed

LOOK_SECONDS = 2e-4  # between looks for weights, when there is nothing else to do
IDLE_SECONDS = 0.2  # between signs of life, when there is nothing to do at all


@dataclass(frozen=True)
class OpenGroup:
    """A worker's part of a group."""

    lanes: list[Lane]
    slots: tuple[int, ...]
    chunks: Floats
    version: NDArray[np.int64]


@dataclass(frozen=True)
class Chunk:
    """A chunk to collect, with weights that may still be on their way."""

    group: OpenGroup
    steps: int
    version: int

    @property
    def ready(self) -> bool:
        return bool(self.group.version[0] >= self.version)


class Worker:
    def __init__(self, connection: Connection, make: Make, beats: NDArray[np.int64]) -> None:
        self.connection, self.make = connection, make
        # [2]: counted up at least every few seconds, since this worker is well; and the key of the
        # group or evaluation it is working for.
        self.beats = beats
        self.envs: dict[EnvConfig, Envs] = {}
        self.groups: dict[int, OpenGroup] = {}
        self.chunks: dict[int, Chunk] = {}  # to collect, by group
        self.evaluations: deque[tuple[int, Evaluation]] = deque()
        self.stopped = False

    def serve(self) -> None:
        """Answer requests until told to stop.

        After an error the group or evaluation in which it happened is forgotten; others continue.
        """
        while not self.stopped:
            self.beats[0] += 1
            task = self._task()
            pause = LOOK_SECONDS if self.chunks else IDLE_SECONDS
            if self._message_within(0 if task else pause):
                key, content = self.connection.recv()
                task = partial(self._handle, key, content)
            if task:
                try:
                    task()
                except Exception:
                    key = int(self.beats[1])
                    self._forget(key)
                    self._send(Failed(key, traceback.format_exc()))

    def _work_for(self, key: int) -> None:
        self.beats[1] = key

    def _send(self, answer: Answer) -> None:
        self.connection.send(answer)

    def _handle(self, key: int, content: bytes) -> None:
        self._work_for(key)
        match request := _read(content):
            case Open():
                self._open(request)
            case Collect(key, steps, version):
                self.chunks[key] = Chunk(self.groups[key], steps, version)
            case Evaluate(key, job):
                evaluation = Evaluation(job, self._envs(job.env))
                self.evaluations.append((key, evaluation))
            case Save(key):
                self._save(key)
            case Close(key):
                self._close(key)
            case Reset():
                self._reset()
            case Stop():
                self.stopped = True

    def _message_within(self, seconds: float) -> bool:
        # Not `connection.poll`: it rounds up to whole milliseconds and costs four times as much.
        return bool(select.select([self.connection], [], [], seconds)[0])

    def _task(self) -> Callable[[], None] | None:
        """What can be done without a message: a chunk whose weights are there, or evaluating."""
        for key, chunk in self.chunks.items():
            if chunk.ready:
                return partial(self._collect, key)
        return self._advance if self.evaluations else None

    def _collect(self, key: int) -> None:
        start = time.monotonic()
        self._work_for(key)
        chunk = self.chunks.pop(key)
        group, episodes = chunk.group, list[Episode]()
        for lane, slot in zip(group.lanes, group.slots, strict=True):
            episodes += lane.collect(group.chunks[slot, : chunk.steps])
            self.beats[0] += 1
        self._send(Collected(key, episodes, start, time.monotonic()))

    def _advance(self) -> None:
        """One step of the oldest evaluation."""
        key, evaluation = self.evaluations[0]
        self._work_for(key)
        result = evaluation.advance()
        if result is not None:
            self.evaluations.popleft()
            self._send(Evaluated(key, result))

    def _envs(self, config: EnvConfig) -> Envs:
        if config not in self.envs:
            config.check_imported()
            self.envs[config] = Envs(config, self.make)
        return self.envs[config]

    def _open(self, spec: Open) -> None:
        weights, envs, lanes = spec.weights.open(), self._envs(spec.env), []
        for lane_spec, start in zip(spec.lanes, spec.starts, strict=True):
            lanes.append(Lane(lane_spec, envs, Actor(spec.layout, weights[lane_spec.run])))
            lanes[-1].start(start)
            self.beats[0] += 1
        self.groups[spec.key] = OpenGroup(
            lanes, spec.slots, spec.chunks.open(writable=True), spec.version.open()
        )

    def _save(self, key: int) -> None:
        lanes = self.groups[key].lanes
        self._send(Saved(key, {(lane.spec.run, lane.spec.lane): lane.save() for lane in lanes}))

    def _reset(self) -> None:
        """Environments are dropped too: one may have failed in the middle of a step."""
        for table in (self.envs, self.groups, self.chunks):
            table.clear()
        self.evaluations.clear()
        self._send(Emptied())

    def _close(self, key: int) -> None:
        if group := self._forget(key):
            for lane in group.lanes:
                if lane.env is not None:
                    lane.envs.give(lane.task, lane.env)

    def _forget(self, key: int) -> OpenGroup | None:
        """A group or an evaluation, with its environments: one may be in the middle of a step."""
        self.chunks.pop(key, None)
        self.evaluations = deque(item for item in self.evaluations if item[0] != key)
        return self.groups.pop(key, None)


def _read(content: bytes) -> Request:
    """UserError if a function or class that it names cannot be imported here."""
    try:
        request: Request = pickle.loads(content)
    except (Exception, SystemExit) as error:  # whatever a user's file raises
        what = where_it_failed(in_called_code(error))
        raise UserError(f"a worker process cannot import a task: {what}") from error
    return request


def work(connection: Connection, make: Make, beats: ArrayRef) -> None:
    """The body of a worker process."""
    ignore_signals()
    try:
        counts = beats.open(writable=True)
    except FileNotFoundError:
        return  # the parent was gone before this process had started
    try:
        Worker(connection, make, counts).serve()
    except (EOFError, ConnectionError):
        return  # the parent is gone
