"""Starts worker processes and ends those that hang."""

import contextlib
import multiprocessing
import pickle
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from types import ModuleType

import numpy as np

from cwbench.rollout.episodes import Make
from cwbench.rollout.messages import Emptied, Request, Stop
from cwbench.rollout.shared_memory import SharedArray
from cwbench.rollout.signals import blocked_signals
from cwbench.rollout.worker import work
from cwbench.spec.environment import environment

# One thread per worker: there are as many workers as cores.
THREADS = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
STOP_SECONDS = 2.0  # that workers have to stop by themselves
STARTUP_SECONDS = 300.0  # a new process may be silent for this long, whatever the timeout


class WorkerProcess:
    """One worker process and the pipe to it."""

    def __init__(self, make: Make) -> None:
        context = multiprocessing.get_context("spawn")  # fork is unsafe once torch has threads
        self.beats = SharedArray((2,), np.int64)  # see `Worker`
        self.connection, theirs = context.Pipe()
        self._process = context.Process(
            target=work, args=(theirs, make, self.beats.ref), name="cwbench-worker", daemon=True
        )
        with environment(THREADS), without_main(), blocked_signals():
            self._process.start()
        theirs.close()
        self.pid = self._process.pid or 0
        self._seen, self._silent = 0, 0.0
        self._hung = False

    def send(self, request: Request) -> None:
        """Does nothing if the process is dead: its end is noticed where answers are awaited.

        The request goes as bytes: the worker may be unable to import what it names, a file that was
        edited meanwhile, and must still know whose request it was.
        """
        with contextlib.suppress(OSError):
            self.connection.send((getattr(request, "key", 0), pickle.dumps(request)))

    def look(self, seconds: float, timeout: float) -> None:
        """Kill the process if it has been silent for too long; called every few `seconds`."""
        beats = int(self.beats.array[0])
        self._silent = 0.0 if beats != self._seen else self._silent + seconds
        self._seen = beats
        if self._silent >= (timeout if beats else max(timeout, STARTUP_SECONDS)):
            self._hung = True
            self.kill()

    @property
    def key(self) -> int:
        """Of the group or evaluation that it works for, or did last; 0: none yet."""
        return int(self.beats.array[1])

    def kill(self) -> None:
        self._process.kill()

    def emptied(self, deadline: float) -> bool:
        """Skip answers until the one to a reset; whether it came in time."""
        with contextlib.suppress(EOFError, OSError):
            while self.connection.poll(max(0.0, deadline - time.monotonic())):
                if isinstance(self.connection.recv(), Emptied):
                    return True
        return False

    def end(self, seconds: float = 0.0) -> str:
        """Wait for the end of the process, then kill it; says how it ended."""
        self._process.join(seconds)
        if self._process.is_alive():
            self.kill()
            self._process.join()
        self.connection.close()
        self.beats.close()
        if self._hung:
            return "stopped responding and was killed (see --worker-timeout)"
        return f"ended with exit code {self._process.exitcode} (out of memory?)"


def kill_all(workers: Sequence[WorkerProcess]) -> None:
    for worker in workers:
        worker.kill()


def stop_all(workers: Sequence[WorkerProcess]) -> None:
    """Ask all to stop, and kill those that have not after a while."""
    for worker in workers:
        worker.send(Stop())
    killer = threading.Timer(STOP_SECONDS, kill_all, [workers])
    killer.start()
    for worker in workers:
        worker.end(2 * STOP_SECONDS)
    killer.cancel()


class Watchdog(threading.Thread):
    """Kills workers that are silent for longer than `timeout`, so that nothing waits for them.

    A thread: the process may be blocked sending to a worker or receiving from it. Silence is
    counted in looks, not by the clock, so a process that was suspended itself kills no worker.
    """

    def __init__(self, workers: Sequence[WorkerProcess], timeout: float) -> None:
        super().__init__(name="cwbench-watchdog", daemon=True)
        self.workers, self.timeout = workers, timeout
        self._stop_event = threading.Event()

    def run(self) -> None:
        pause = min(1.0, self.timeout / 4)
        while not self._stop_event.wait(pause):
            for worker in tuple(self.workers):
                worker.look(pause, self.timeout)

    def stop(self) -> None:
        self._stop_event.set()
        self.join()


@contextlib.contextmanager
def without_main() -> Iterator[None]:
    """Processes started inside the block do not import the user's script.

    Workers need nothing of it, and a script that trains at its top level would train again in them.
    """
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main
