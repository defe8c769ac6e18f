"""Signals wait for the end of a block; processes that work for others ignore them for good."""

import os
import signal
import time

from cwbench.rollout.pool import Pool
from cwbench.rollout.signals import SIGNALS, blocked_signals


def test_what_arrives_in_the_block_is_handled_after_it() -> None:
    got: list[int] = []
    before = signal.signal(signal.SIGUSR1, lambda number, frame: got.append(number))
    try:
        with blocked_signals():
            signal.raise_signal(signal.SIGUSR1)
            assert got == []
        assert got == [signal.SIGUSR1]
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_no_signal_ends_a_worker_while_it_starts() -> None:
    with Pool(1) as pool:
        [worker], deadline = pool.workers, time.monotonic() + 120
        while not worker.beats.array[0]:
            for number in SIGNALS:
                os.kill(worker.pid, number)
            assert worker._process.is_alive() and time.monotonic() < deadline
            time.sleep(0.01)
