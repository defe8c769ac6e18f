"""What a Slurm job does, without Slurm."""

import signal
import threading
import time
from collections.abc import Iterator

import pytest

from cwbench.launch import slurm


class Handled(Exception):
    """Raised by the handler of a signal."""


@pytest.fixture
def handled() -> Iterator[None]:
    def handle(number: int, _: object) -> None:
        raise Handled

    before = signal.signal(signal.SIGUSR2, handle)
    yield
    signal.signal(signal.SIGUSR2, before)


@pytest.mark.usefixtures("handled")
def test_a_signal_another_thread_takes_is_handled_while_a_stopped_job_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def take() -> None:
        time.sleep(0.5)
        signal.pthread_kill(threading.get_ident(), signal.SIGUSR2)

    monkeypatch.setattr(slurm, "LINGER_SECONDS", 20.0)
    thread = threading.Thread(target=take)
    thread.start()
    begun = time.monotonic()
    with pytest.raises(Handled):
        slurm.linger()
    assert time.monotonic() - begun < 10
    thread.join()
