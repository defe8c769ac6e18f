"""Worker processes that die or hang at chosen chunks."""

import os
import signal
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from cwbench.rollout.collector import Collector
from cwbench.rollout.pool import Pool

Fault = Callable[[Pool, int], None]


class Deadly:
    """In place of an environment. Workers import this file, which is faster without torch."""

    def __init__(self, task: str, config: Any) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


def kill(pool: Pool, number: int) -> None:
    os.kill(pool.workers[number].pid, signal.SIGKILL)


def hang(pool: Pool, number: int) -> None:
    """Stop a worker and let the watchdog look twice, as if a long time had passed."""
    worker = pool.workers[number]
    os.kill(worker.pid, signal.SIGSTOP)
    os.waitid(os.P_PID, worker.pid, os.WSTOPPED | os.WNOWAIT)
    for _ in range(2):
        worker.look(1e9, 1e9)


def lose(
    patch: pytest.MonkeyPatch, faults: Mapping[int, tuple[Fault, int]], *, after: bool
) -> list[int]:
    """Chunk (from 1) -> what happens to which worker, before or after the chunk is asked for.

    Returns a list that receives the steps of every chunk.
    """
    request, chunks = Collector.request, list[int]()

    def faulty(self: Collector, steps: int, version: int) -> None:
        chunks.append(steps)
        if after:
            request(self, steps, version)
        if len(chunks) in faults:
            fault, worker = faults[len(chunks)]
            fault(self.pool, worker)
        if not after:
            request(self, steps, version)

    patch.setattr(Collector, "request", faulty)
    return chunks
