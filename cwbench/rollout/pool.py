"""The trainer's side of the workers: assigns lanes and evaluations, receives results."""

import itertools
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from multiprocessing.connection import wait
from statistics import fmean
from typing import Protocol

import numpy as np

from cwbench import envs
from cwbench.rollout.balance import assign_lanes
from cwbench.rollout.episodes import (
    Episode,
    EvalJob,
    EvalResult,
    LaneSpec,
    LaneStart,
    LaneState,
    Make,
)
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
)
from cwbench.rollout.processes import Watchdog, WorkerProcess, kill_all, stop_all
from cwbench.rollout.shared_memory import SharedArray
from cwbench.spec.actor_layout import ActorLayout, Floats
from cwbench.spec.config import EnvConfig

TIMEOUT_SECONDS = 60.0
MOST_FAILURES = 3  # of one worker, in a row
CHECK_SECONDS = 0.2  # between looks at requests to stop, while waiting for workers
RESET_SECONDS = 2.0  # that workers have to drop everything, before they are replaced


class WorkerError(RuntimeError):
    """A worker process failed; the message says how, or is its traceback."""


class Owner(Protocol):
    """Whose work a worker does: an error in it concerns nobody else."""

    failure: str  # empty while all is well


@dataclass(frozen=True)
class Assigned:
    """An evaluation in progress."""

    worker: int
    job: EvalJob
    done: Callable[[EvalResult], None]
    owner: Owner | None


class Pool:
    """Worker processes. One pool serves every fleet of a command.

    A worker that dies, or hangs for `timeout` seconds, is replaced, and what it was doing is done
    again: evaluations from their beginning, chunks from where they began. Results do not change.
    An error in a fleet's environments is left in the `failure` of its collector or evaluator.
    """

    def __init__(
        self, workers: int, make: Make = envs.make, *, timeout: float = TIMEOUT_SECONDS
    ) -> None:
        self._make = make
        self.workers = [WorkerProcess(make) for _ in range(workers)]
        self._watchdog = Watchdog(self.workers, timeout)
        self._watchdog.start()
        self._failures = [0] * workers  # in a row, while doing the same work
        self._repeated: list[set[int]] = [set() for _ in range(workers)]  # that work's keys
        self._keys = itertools.count(1)
        self._evaluations: dict[int, Assigned] = {}
        self._queued = [0] * workers  # evaluations in progress, per worker
        self.collectors: dict[int, Collector] = {}
        self.load = [0.0] * workers  # cost of the lanes of open fleets, per worker
        self.check_stop: Callable[[], None] = lambda: None  # called while waiting; may raise
        # What workers were busy with: the last chunks as (fleet, start, end), and in all.
        self.collect_spans: deque[tuple[int, float, float]] = deque(maxlen=10_000)
        self.collection_seconds = self.evaluation_seconds = 0.0

    def evaluate(
        self, job: EvalJob, done: Callable[[EvalResult], None], owner: Owner | None = None
    ) -> None:
        """Start evaluation episodes; `done` is called, from some later wait, with the result.

        An error goes to the owner; without one it is raised by whoever waits.
        """
        key = next(self._keys)
        worker = self._queued.index(min(self._queued))
        self._queued[worker] += 1
        self._evaluations[key] = Assigned(worker, job, done, owner)
        self.send(worker, Evaluate(key, job))

    def cancel(self, owner: Owner) -> None:
        """Evaluations that nobody waits for any more."""
        for key, known in list(self._evaluations.items()):
            if known.owner is owner:
                self._end_evaluation(key)
                self.send(known.worker, Close(key))

    def _end_evaluation(self, key: int) -> Assigned:
        known = self._evaluations.pop(key)
        self._queued[known.worker] -= 1
        return known

    def send(self, worker: int, request: Request) -> None:
        self.workers[worker].send(request)

    def receive(self) -> None:
        """Wait a short time for messages and handle those that have arrived."""
        self.check_stop()
        numbers = {worker.connection: number for number, worker in enumerate(self.workers)}
        for connection in wait(list(numbers), CHECK_SECONDS):
            worker = numbers[connection]  # type: ignore[index]
            try:
                answer: Answer = self.workers[worker].connection.recv()
            except (EOFError, OSError):
                self._replace(worker)
            else:
                self._handle(worker, answer)

    def _handle(self, worker: int, answer: Answer) -> None:
        match answer:
            case Collected(key, episodes, start, end):
                self.collect_spans.append((key, start, end))
                self.collection_seconds += end - start
                if key in self.collectors:
                    self.collectors[key].episodes[worker] = episodes
            case Saved(key, states):
                if key in self.collectors:
                    self.collectors[key].states[worker] = states
            case Evaluated(key, result):
                self.evaluation_seconds += result.seconds
                if key in self._evaluations:
                    self._end_evaluation(key).done(result)
            case Failed(key, text):
                self._fail(key, text)
            case Emptied():
                return
        self._repeated[worker].discard(answer.key)
        if not self._repeated[worker]:
            self._failures[worker] = 0

    def _fail(self, key: int, text: str) -> None:
        """Tell the owner of a fleet or evaluation; that of a closed one no longer cares."""
        owner: Owner | None = self.collectors.get(key)
        known = key in self._evaluations
        if known:
            owner = self._end_evaluation(key).owner
        if owner is not None:
            owner.failure = text
        elif known or not key:
            raise WorkerError(text)

    def _owed(self, worker: int) -> set[int]:
        """Keys of the fleets and evaluations for which an answer is awaited."""
        evaluations = {key for key, known in self._evaluations.items() if known.worker == worker}
        fleets = {key for key, fleet in self.collectors.items() if fleet.waits_for(worker)}
        return evaluations | fleets

    def _replace(self, worker: int) -> None:
        """Start a new process in place of a dead one, and give it the same work."""
        key, reason = self.workers[worker].key, self.workers[worker].end()
        self.workers[worker] = WorkerProcess(self._make)
        self._failures[worker] += 1
        if self._failures[worker] >= MOST_FAILURES:
            self._failures[worker] = 0
            self._fail(key, f"worker {worker} failed {MOST_FAILURES} times in a row; it {reason}")
        else:
            warnings.warn(f"worker {worker} {reason}; it is replaced", RuntimeWarning, stacklevel=2)
        self._repeated[worker] = self._owed(worker)
        for fleet in self.collectors.values():
            fleet.repeat(worker)
        for key, evaluation in self._evaluations.items():
            if evaluation.worker == worker:
                self.send(worker, Evaluate(key, evaluation.job))

    def reset(self) -> None:
        """After a failure: workers drop everything, and earlier answers are ignored.

        Those that do not answer in time are replaced.
        """
        for worker in self.workers:
            worker.send(Reset())
        deadline = time.monotonic() + RESET_SECONDS
        for number, worker in enumerate(self.workers):
            if not worker.emptied(deadline):
                worker.end()
                self.workers[number] = WorkerProcess(self._make)
        count = len(self.workers)
        self._evaluations.clear()
        self.collectors.clear()
        self.load, self._queued, self._failures = [0.0] * count, [0] * count, [0] * count
        self._repeated = [set() for _ in range(count)]

    def kill(self) -> None:
        """End all workers at once, whatever they do; the pool is of no use afterwards."""
        kill_all(self.workers)

    def close(self) -> None:
        self._watchdog.stop()
        stop_all(self.workers)

    def __enter__(self) -> "Pool":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class History:
    """The latest actions of a fleet's lanes, to be repeated by a worker that takes lanes over."""

    def __init__(self, step: int) -> None:
        self.step = step  # of all lanes, after the last chunk
        self._chunks: deque[tuple[int, Floats]] = deque()  # first step, actions [lanes, n, A]

    def add(self, actions: Floats, oldest: int) -> None:
        """A chunk's actions; those before step `oldest` are no longer needed."""
        self._chunks.append((self.step, actions.copy()))
        self.step += actions.shape[1]
        while self._chunks and self._chunks[0][0] + self._chunks[0][1].shape[1] <= oldest:
            self._chunks.popleft()

    def since(self, lane: int, step: int) -> Floats | None:
        """One lane's actions from a step on: [n, A]."""
        parts = [actions[lane, max(0, step - first) :] for first, actions in self._chunks]
        return np.concatenate(parts) if parts else None


class Collector:
    """The lanes of one fleet, spread over a pool."""

    def __init__(
        self,
        pool: Pool,
        lanes: Sequence[LaneSpec],
        layout: ActorLayout,
        env: EnvConfig,
        *,
        runs: int,
        longest: int,
        width: int,
        states: Mapping[tuple[int, int], LaneState],
    ) -> None:
        self.pool, self.env, self.key = pool, env, next(pool._keys)
        self.lanes, self.layout = list(lanes), layout
        self.weights = SharedArray((runs, layout.size))
        self.chunks = SharedArray((len(lanes), longest, width))
        self.version = SharedArray((1,), np.int64)  # of the weights
        self.episodes: dict[int, list[Episode]] = {}  # of the last request, by worker
        self.states: dict[int, Mapping[tuple[int, int], LaneState]] = {}  # of lanes, by worker
        self.failure = ""
        self._collect: Collect | None = None  # the request in progress
        self._saving = False
        self._slots = {(lane.run, lane.lane): slot for slot, lane in enumerate(lanes)}
        self._starts = [_start(states.get(key)) for key in self._slots]
        self._history = History(self._starts[0].step)
        self._shares = self._assign(lanes)
        self._users = [worker for worker, slots in enumerate(self._shares) if slots]
        pool.collectors[self.key] = self
        for worker in self._users:
            self._open(worker)

    def _open(self, worker: int) -> None:
        slots = self._shares[worker]
        request = Open(
            self.key,
            tuple(self.lanes[slot] for slot in slots),
            self.layout,
            self.weights.ref,
            self.version.ref,
            self.chunks.ref,
            tuple(slots),
            self.env,
            tuple(self._start_of(slot) for slot in slots),
        )
        self.pool.send(worker, request)

    def _start_of(self, slot: int) -> LaneStart:
        """Where a lane is after the last complete chunk."""
        start = self._starts[slot]
        return replace(start, actions=self._history.since(slot, start.step))

    def _assign(self, lanes: Sequence[LaneSpec]) -> list[list[int]]:
        """Lanes for each worker. Which worker steps a lane changes no number."""
        costs = [fmean(envs.step_cost(task, self.env) for _, task in lane.cycle) for lane in lanes]
        shares = assign_lanes(costs, self.pool.load)
        self._load = [sum(costs[slot] for slot in share) for share in shares]
        self.pool.load = [a + b for a, b in zip(self.pool.load, self._load, strict=True)]
        return shares

    def request(self, steps: int, version: int) -> None:
        """Roll every lane for n steps, once the weights of this version have arrived."""
        self._collect = Collect(self.key, steps, version)
        self.episodes.clear()
        for worker in self._users:
            self.pool.send(worker, self._collect)

    def receive(self) -> tuple[Floats, list[Episode]]:
        """Transitions [lanes, steps, F] of the last request, and the episodes that ended."""
        assert self._collect is not None
        while not self.complete:
            self.pool.receive()
        chunk = self.chunks.array[:, : self._collect.steps]
        episodes = _sorted(chain(*self.episodes.values()))
        self._collect = None
        self._remember(chunk, episodes)
        return chunk, episodes

    @property
    def workers(self) -> int:
        """How many step its lanes."""
        return len(self._users)

    @property
    def complete(self) -> bool:
        """Whether all of the last request has arrived. WorkerError if it never will."""
        if self.failure:
            raise WorkerError(self.failure)
        return len(self.episodes) == len(self._users)

    def _remember(self, chunk: Floats, episodes: Sequence[Episode]) -> None:
        for episode in episodes:
            self._starts[self._slots[episode.run, episode.lane]] = episode.following
        actions = envs.dims(self.env).unpack(chunk)["action"]
        self._history.add(actions, min(start.step for start in self._starts))

    def save(self) -> dict[tuple[int, int], LaneState]:
        """The exact state of every lane, by (run, lane)."""
        self.states.clear()
        self._saving = True
        for worker in self._users:
            self.pool.send(worker, Save(self.key))
        while len(self.states) < len(self._users):
            self.pool.receive()
            if self.failure:
                raise WorkerError(self.failure)
        self._saving = False
        return {lane: state for states in self.states.values() for lane, state in states.items()}

    def waits_for(self, worker: int) -> bool:
        if worker not in self._users:
            return False
        collecting = self._collect is not None and worker not in self.episodes
        return collecting or (self._saving and worker not in self.states)

    def repeat(self, worker: int) -> None:
        """Give a new process what the one before it had to do.

        A chunk in progress is collected again even if it had been received: weights and chunk are
        still the same, and so are the results.
        """
        if worker not in self._users or self.failure:
            return
        self._open(worker)
        if self._collect is not None:
            self.episodes.pop(worker, None)
            self.pool.send(worker, self._collect)
        if self._saving and worker not in self.states:
            self.pool.send(worker, Save(self.key))

    def close(self) -> None:
        self.pool.collectors.pop(self.key, None)
        for worker in self._users:
            self.pool.send(worker, Close(self.key))
        self.pool.load = [a - b for a, b in zip(self.pool.load, self._load, strict=True)]
        for shared in (self.weights, self.chunks, self.version):
            shared.close()


def _start(state: LaneState | None) -> LaneStart:
    if state is None:
        return LaneStart()
    return LaneStart(step=int(state["numbers"][0]), state=state)


def _sorted(episodes: Iterable[Episode]) -> list[Episode]:
    return sorted(episodes, key=lambda episode: (episode.run, episode.lane))
