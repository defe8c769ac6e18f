"""The trainer's side of the workers: hands out lanes and evaluations, takes results."""

import contextlib
import itertools
import multiprocessing
import os
import shutil
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from multiprocessing.connection import Connection, wait
from pathlib import Path
from statistics import fmean
from types import ModuleType
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from cwbench import envs
from cwbench.rollout.balance import deal
from cwbench.rollout.episodes import Episode, EvalJob, EvalResult, LaneSpec, LaneState, Make
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
from cwbench.rollout.worker import work
from cwbench.spec.actor_layout import ActorLayout, Floats
from cwbench.spec.config import EnvConfig

# One thread per worker: they are as many as the cores already.
THREADS = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


class WorkerError(RuntimeError):
    """A worker process failed; the message is its traceback."""


class SharedArray:
    """Memory that worker processes map too.

    A file, in memory where /dev/shm has room: containers often give it 64 MiB only.
    """

    def __init__(self, shape: tuple[int, ...], dtype: type[np.generic] = np.float32) -> None:
        size = np.dtype(dtype).itemsize * int(np.prod(shape))
        memory = Path("/dev/shm")
        roomy = os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > 2 * size
        self._folder = tempfile.TemporaryDirectory(
            prefix="cwbench-", dir=memory if roomy else None, ignore_cleanup_errors=True
        )
        self.path = str(Path(self._folder.name) / "array")
        self.array: NDArray[Any] = np.memmap(self.path, dtype, "w+", shape=shape)

    def close(self) -> None:
        self._folder.cleanup()


@dataclass(frozen=True)
class Assigned:
    """An evaluation in progress."""

    worker: int
    done: Callable[[EvalResult], None]


class Pool:
    """Worker processes. One pool serves every fleet of a command."""

    def __init__(self, workers: int, make: Make = envs.make) -> None:
        context = multiprocessing.get_context("spawn")  # fork is unsafe once torch has threads
        self.connections: list[Connection] = []
        self.processes = []
        with _environment(THREADS), _without_main():
            for number in range(workers):
                ours, theirs = context.Pipe()
                process = context.Process(
                    target=work,
                    args=(theirs, make),
                    name=f"cwbench-{number}",
                    daemon=True,
                )
                process.start()
                theirs.close()
                self.connections.append(ours)
                self.processes.append(process)
        self._keys = itertools.count()
        self._evaluations: dict[int, Assigned] = {}
        self._queued = [0] * workers  # evaluations in progress, per worker
        self.collectors: dict[int, Collector] = {}
        self.load = [0.0] * workers  # cost of the lanes of open fleets, per worker
        # What workers were busy with: the last chunks as (fleet, start, end), and in all.
        self.collect_spans: deque[tuple[int, float, float]] = deque(maxlen=10_000)
        self.collection_seconds = self.evaluation_seconds = 0.0

    def evaluate(self, job: EvalJob, done: Callable[[EvalResult], None]) -> None:
        """Start evaluation episodes; `done` is called, from some later wait, with the result."""
        key = next(self._keys)
        worker = self._queued.index(min(self._queued))
        self._queued[worker] += 1
        self._evaluations[key] = Assigned(worker, done)
        self.send(worker, Evaluate(key, job))

    def finish_evaluations(self) -> None:
        while self._evaluations:
            self.receive()

    def send(self, worker: int, request: Request) -> None:
        try:
            self.connections[worker].send(request)
        except OSError:
            self._gone(worker)

    def _gone(self, worker: int) -> NoReturn:
        self.processes[worker].join(timeout=1)
        code = self.processes[worker].exitcode
        raise WorkerError(f"worker {worker} ended with exit code {code} (out of memory?)")

    def receive(self) -> None:
        """Wait for at least one message and handle all that have arrived."""
        for connection in wait(self.connections):
            assert isinstance(connection, Connection)
            worker = self.connections.index(connection)
            try:
                answer: Answer = connection.recv()
            except (EOFError, OSError):
                self._gone(worker)
            self._handle(worker, answer)

    def _handle(self, worker: int, answer: Answer) -> None:
        match answer:
            case Collected(key, episodes, start, end):
                self.collect_spans.append((key, start, end))
                self.collection_seconds += end - start
                if key in self.collectors:
                    self.collectors[key].episodes[worker] = episodes
            case Saved(key, states):
                self.collectors[key].states[worker] = states
            case Evaluated(key, result):
                self.evaluation_seconds += result.seconds
                self._queued[worker] -= 1
                self._evaluations.pop(key).done(result)
            case Failed(text, evaluation):
                if evaluation is not None:
                    self._queued[worker] -= 1
                    del self._evaluations[evaluation]
                raise WorkerError(text)

    def reset(self) -> None:
        """After a failure: workers drop everything, and earlier answers are ignored."""
        for worker in range(len(self.connections)):
            self.send(worker, Reset())
        for worker, connection in enumerate(self.connections):
            try:
                while not isinstance(connection.recv(), Emptied):
                    pass
            except (EOFError, OSError):
                self._gone(worker)
        self._evaluations.clear()
        self.collectors.clear()
        self.load, self._queued = [0.0] * len(self.load), [0] * len(self.load)

    @property
    def alive(self) -> bool:
        return all(process.is_alive() for process in self.processes)

    def close(self) -> None:
        for connection, process in zip(self.connections, self.processes, strict=True):
            with contextlib.suppress(OSError):
                connection.send(Stop())
            process.join(timeout=2)
            if process.is_alive():
                process.kill()
                process.join(timeout=2)
            connection.close()

    def __enter__(self) -> "Pool":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


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
        pool.collectors[self.key] = self
        self.weights = SharedArray((runs, layout.size))
        self.chunks = SharedArray((len(lanes), longest, width))
        self.version = SharedArray((1,), np.int64)  # of the weights
        self.episodes: dict[int, list[Episode]] = {}  # of the last request, by worker
        self.states: dict[int, dict[tuple[int, int], LaneState]] = {}  # of lanes, by worker
        self._steps = 0
        shares = self._deal(lanes)
        self._users = [worker for worker, slots in enumerate(shares) if slots]
        for worker in self._users:
            slots = shares[worker]
            own = tuple(lanes[slot] for slot in slots)
            request = Open(
                self.key,
                own,
                layout,
                self.weights.path,
                self.chunks.path,
                self.version.path,
                ((runs, layout.size), (len(lanes), longest, width)),
                tuple(slots),
                env,
                tuple(states.get((lane.run, lane.lane)) for lane in own),
            )
            pool.send(worker, request)

    def _deal(self, lanes: Sequence[LaneSpec]) -> list[list[int]]:
        """Lanes for each worker. Which worker steps a lane changes no number."""
        costs = [fmean(envs.step_cost(task, self.env) for _, task in lane.cycle) for lane in lanes]
        shares = deal(costs, self.pool.load)
        self._load = [sum(costs[slot] for slot in share) for share in shares]
        self.pool.load = [a + b for a, b in zip(self.pool.load, self._load, strict=True)]
        return shares

    def request(self, steps: int, version: int) -> None:
        """Roll every lane for n steps, once the weights of this version have arrived."""
        self._steps = steps
        self.episodes.clear()
        for worker in self._users:
            self.pool.send(worker, Collect(self.key, steps, version))

    def receive(self) -> tuple[Floats, list[Episode]]:
        """Transitions [lanes, steps, F] of the last request, and the episodes that ended."""
        while len(self.episodes) < len(self._users):
            self.pool.receive()
        return self.chunks.array[:, : self._steps], _sorted(chain(*self.episodes.values()))

    def save(self) -> dict[tuple[int, int], LaneState]:
        """The exact state of every lane, by (run, lane)."""
        self.states.clear()
        for worker in self._users:
            self.pool.send(worker, Save(self.key))
        while len(self.states) < len(self._users):
            self.pool.receive()
        return {lane: state for states in self.states.values() for lane, state in states.items()}

    def close(self) -> None:
        self.pool.collectors.pop(self.key, None)
        for worker in self._users:
            with contextlib.suppress(WorkerError):
                self.pool.send(worker, Close(self.key))
        self.pool.load = [a - b for a, b in zip(self.pool.load, self._load, strict=True)]
        for shared in (self.weights, self.chunks, self.version):
            shared.close()


def _sorted(episodes: Iterable[Episode]) -> list[Episode]:
    return sorted(episodes, key=lambda episode: (episode.run, episode.lane))


@contextlib.contextmanager
def _environment(values: Mapping[str, str]) -> Any:
    """Environment variables for processes started inside the block."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextlib.contextmanager
def _without_main() -> Iterator[None]:
    """Processes started inside the block do not import the user's script.

    Workers need nothing of it, and a script that trains at its top level would train again in them.
    """
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main
