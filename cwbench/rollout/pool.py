"""The trainer's side of the workers: sends requests, receives answers, replaces lost processes."""

import itertools
import time
import warnings
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from multiprocessing.connection import wait
from typing import Protocol

from cwbench import envs
from cwbench.rollout.episodes import (
    Episode,
    EvalJob,
    EvalResult,
    LaneState,
    Make,
)
from cwbench.rollout.messages import (
    Answer,
    Close,
    Collected,
    Emptied,
    Evaluate,
    Evaluated,
    Failed,
    Request,
    Reset,
    Saved,
)
from cwbench.rollout.processes import Watchdog, WorkerProcess, kill_all, stop_all

TIMEOUT_SECONDS = 60.0
MOST_FAILURES = 3  # of one worker, in a row
CHECK_SECONDS = 0.2  # between looks at requests to stop, while waiting for workers
RESET_SECONDS = 2.0  # that workers have to drop everything, before they are replaced


class WorkerError(RuntimeError):
    """A worker process failed; the message says how, or is its traceback."""


class Owner(Protocol):
    """Owner of a worker's task: an error in the task concerns only its owner."""

    failure: str  # empty while all is well


class Lanes(Owner, Protocol):
    """The lanes of a group (`collector.py`), as the pool knows them."""

    episodes: dict[int, list[Episode]]  # of the last request, by worker
    states: dict[int, Mapping[tuple[int, int], LaneState]]  # of lanes, by worker

    def waits_for(self, worker: int) -> bool: ...
    def repeat(self, worker: int) -> None: ...


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
    An error in a group's environments is left in the `failure` of its collector or evaluator.
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
        self.keys = itertools.count(1)  # of groups and evaluations
        self._evaluations: dict[int, Assigned] = {}
        self._queued = [0] * workers  # evaluations in progress, per worker
        self.collectors: dict[int, Lanes] = {}
        self.load = [0.0] * workers  # cost of the lanes of open groups, per worker
        self.check_stop: Callable[[], None] = lambda: None  # called while waiting; may raise
        # What workers were busy with: the last chunks as (group's key, start, end), and in all.
        self.collect_spans: deque[tuple[int, float, float]] = deque(maxlen=10_000)
        self.collection_seconds = self.evaluation_seconds = 0.0

    def evaluate(
        self, job: EvalJob, done: Callable[[EvalResult], None], owner: Owner | None = None
    ) -> None:
        """Start evaluation episodes; `done` is called, from some later wait, with the result.

        An error goes to the owner; without one it is raised where the pool is waited for.
        """
        key = next(self.keys)
        # Evaluations wait for lanes: of workers with equally many, the one with the fewest lanes.
        worker = min(range(len(self.workers)), key=lambda one: (self._queued[one], self.load[one]))
        self._queued[worker] += 1
        self._evaluations[key] = Assigned(worker, job, done, owner)
        self.send(worker, Evaluate(key, job))

    def cancel(self, owner: Owner) -> None:
        """Evaluations that are no longer needed."""
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
        self._forgive(worker)

    def _forgive(self, worker: int) -> None:
        """Forget a worker's failures once it has no repeated work left that anybody waits for."""
        if self._repeated[worker]:
            self._repeated[worker] &= self._owed(worker)
        if not self._repeated[worker]:
            self._failures[worker] = 0

    def _fail(self, key: int, text: str) -> None:
        """Tell the owner of a group's lanes or of an evaluation, unless it has been closed."""
        owner: Owner | None = self.collectors.get(key)
        known = key in self._evaluations
        if known:
            owner = self._end_evaluation(key).owner
        if owner is not None:
            owner.failure = owner.failure or text  # what followed from the first says less
        elif known or not key:
            raise WorkerError(text)

    def _owed(self, worker: int) -> set[int]:
        """Keys of the groups and evaluations for which an answer is awaited."""
        evaluations = {key for key, known in self._evaluations.items() if known.worker == worker}
        well = [(key, lanes) for key, lanes in self.collectors.items() if not lanes.failure]
        return evaluations | {key for key, lanes in well if lanes.waits_for(worker)}

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
        for lanes in self.collectors.values():
            lanes.repeat(worker)
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
