"""Requests to stop: Ctrl-C, a closed terminal and the signals of schedulers."""

import contextlib
import errno
import math
import os
import signal
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator, Sequence

# How long a method may continue to retrain at a task's end: that cannot be saved, and falls back to
# the last snapshot. Schedulers give more notice than people have patience.
GRACE_SECONDS = {
    signal.SIGINT: 3.0,
    signal.SIGTERM: 20.0,
    signal.SIGHUP: 20.0,
    signal.SIGUSR1: 60.0,
    signal.SIGUSR2: 60.0,
}
# How long a chunk may continue, to be saved at its end, after another signal than Ctrl-C: a
# scheduler kills what takes longer than it allows, and requeues what has stopped by then.
CHUNK_SECONDS = 60.0
HANDLE_SECONDS = 1.0  # between two times that handlers are set, which takes a few microseconds
FORCE_SECONDS = 4.0  # after a second Ctrl-C, until the process is ended whatever it does
INTERRUPTED = 130  # exit code: 128 + SIGINT


def answer() -> None:
    """Tell someone at a terminal that a Ctrl-C was noticed: a compilation may last a minute."""
    if sys.stderr.isatty():
        text = "finishing the current updates, then saving; Ctrl-C again stops at once, unsaved"
        print(text, file=sys.stderr)


def leave_closed_terminal(streams: Sequence[int] = (1, 2)) -> None:
    """Write to nowhere if the terminal is gone: every line would be an error."""
    for stream in streams:
        try:
            termios.tcgetattr(stream)
        except termios.error as error:
            if error.args[0] == errno.EIO:  # not a file or a pipe
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, stream)
                os.close(nowhere)


def in_main_thread() -> bool:
    """The only one in which Python lets handlers of signals be set."""
    return threading.current_thread() is threading.main_thread()


class Interrupted(BaseException):
    """The user, or the machine's scheduler, asked to stop.

    No Exception: the compiler of updates catches those and raises its own.
    """


class StopRequest:
    """Remembers a Ctrl-C or a scheduler's signal. Fleets pause after the current chunk.

    Retraining at a task's end is cut short when it takes too long, and a compilation at once: it
    may take minutes, and comes before the first update. After a second Ctrl-C nothing is waited
    for.
    """

    def __init__(self, force: Callable[[], None] = lambda: None) -> None:
        self.asked = self.urgent = False  # urgent: since a second Ctrl-C
        self._retraining_ends = self._chunk_ends = math.inf  # at the latest
        self._compiling = False
        self._numbers: set[signal.Signals] = set()  # of the signals it listens to
        self._handle_again = 0.0  # when to set their handlers again
        self._force = force  # called before the process is ended by force

    def __bool__(self) -> bool:
        return self.asked

    def _ask(self, number: int, _: object) -> None:
        if number == signal.SIGHUP:
            leave_closed_terminal()
        now, by_user = time.monotonic(), number == signal.SIGINT
        self.urgent |= self.asked and by_user
        self.asked = True
        grace = GRACE_SECONDS[signal.Signals(number)]
        self._retraining_ends = min(self._retraining_ends, now + grace)
        if not by_user:
            self._chunk_ends = min(self._chunk_ends, now + CHUNK_SECONDS)
        if self._compiling:
            raise Interrupted

    def begin_compilation(self) -> None:
        if self:
            raise Interrupted
        self._compiling = True

    def end_compilation(self) -> None:
        """Maybe in a thread of autograd, in which a CUDA device's backward pass is compiled."""
        self._compiling = False
        self._handle_again = 0.0
        if in_main_thread():
            self._handle()

    def check_urgent(self) -> None:
        """While waiting for workers: a snapshot may need longer than the time of grace."""
        if self.urgent:
            raise Interrupted

    def check(self, retraining: bool) -> None:
        """Between updates: of a chunk, or of a method that retrains at a task's end."""
        now = time.monotonic()
        if now >= self._handle_again:
            self._handle()
        end = self._retraining_ends if retraining else self._chunk_ends
        if self.urgent or now >= end:
            raise Interrupted

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        """Inside the block signals are requests. Outside the main thread nothing changes."""
        if not in_main_thread():
            yield
            return
        numbers = set(GRACE_SECONDS)
        if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:  # nohup
            numbers.remove(signal.SIGHUP)
        before = {number: signal.getsignal(number) for number in numbers}
        self._numbers = numbers
        self._handle()
        # A process starts with the mask of its parent, which may have blocked them.
        mask = signal.pthread_sigmask(signal.SIG_UNBLOCK, numbers)
        try:
            with self._forcing():
                yield
        finally:
            self._numbers = set()
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            for number, handler in before.items():
                signal.signal(number, handler)

    def _handle(self) -> None:
        """Also again and again: LLVM, with which Triton compiles, takes the signals for itself.

        Its handler of SIGUSR1 does nothing.
        """
        self._handle_again = time.monotonic() + HANDLE_SECONDS
        for number in self._numbers:
            signal.signal(number, self._ask)

    @contextlib.contextmanager
    def _forcing(self) -> Iterator[None]:
        """End the process some seconds after a second Ctrl-C, even if the main thread is blocked.

        Python runs signal handlers in the main thread only; this thread gets the signals' numbers
        through a pipe from the interpreter itself.
        """
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        previous = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        over = threading.Event()
        thread = threading.Thread(target=self._count, args=(reader, over), daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            signal.set_wakeup_fd(previous)
            os.close(writer)
            thread.join()
            os.close(reader)

    def _count(self, reader: int, over: threading.Event) -> None:
        presses = 0
        while numbers := os.read(reader, 64):  # empty when the block has been left
            presses += numbers.count(signal.SIGINT)
            if presses == 1 and signal.SIGINT in numbers:
                answer()
            if presses > 1:
                if not over.wait(FORCE_SECONDS):
                    self._end()
                return

    def _end(self) -> None:
        self._force()
        show_cursor = "\x1b[?25h" if sys.stderr.isatty() else ""  # a live table hides it
        text = "stopped by force; the same command continues from the last snapshots"
        os.write(2, f"{show_cursor}\n{text}\n".encode())
        os._exit(INTERRUPTED)
