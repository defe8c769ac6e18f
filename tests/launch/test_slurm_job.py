"""What a Slurm job does, without Slurm."""

import signal
import threading
import time

import pytest

from cwbench.launch import slurm


class Handled(Exception):
    """Raised by the handler of a signal."""


def test_a_signal_another_thread_takes_is_handled_while_a_stopped_job_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    handled, noticed = threading.Event(), []

    def handle(number: int, _: object) -> None:
        handled.set()
        raise Handled

    def take() -> None:
        time.sleep(0.5)
        signal.pthread_kill(threading.get_ident(), signal.SIGUSR2)
        noticed.append(handled.wait(10))

    monkeypatch.setattr(slurm, "LINGER_SECONDS", 20.0)
    before = signal.signal(signal.SIGUSR2, handle)
    thread = threading.Thread(target=take)
    try:
        thread.start()
        with pytest.raises(Handled):
            slurm.linger()
    finally:
        signal.signal(signal.SIGUSR2, before)
        thread.join()
    assert noticed == [True]
