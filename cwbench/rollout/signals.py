"""Signals that processes which work for another one leave to it.

Ctrl-C and the end of a terminal reach the whole process group, and a cluster's scheduler signals
every process of a job; the parent decides when its processes end, after it has asked them for
their state.
"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


@contextmanager
def blocked_signals() -> Iterator[None]:
    """Processes started inside the block receive none until they call `ignore_signals`.

    They need a second to get there, and would end with a traceback. What arrives here meanwhile is
    handled after the block.
    """
    resource_tracker.ensure_running()  # starting it, which a first process does, unblocks signals
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def ignore_signals() -> None:
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
