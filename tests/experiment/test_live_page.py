"""The page during training."""

import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from cwbench.experiment import live_page
from cwbench.experiment.live_page import LivePage


def test_the_first_page_does_not_wait_a_minute(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    written, times = threading.Event(), []

    def write(self: LivePage) -> None:
        times.append(self.results)
        written.set()

    monkeypatch.setattr(LivePage, "_write", write)
    monkeypatch.setattr(live_page, "FIRST_SECONDS", 0.0)
    monkeypatch.setattr(live_page, "EVERY_SECONDS", 3600.0)
    with LivePage(tmp_path, print):
        assert written.wait(60)
    assert times == [tmp_path] * 2  # the other at the end


def test_a_slow_page_is_written_less_often(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nine times as long as it took: of a core it uses a tenth."""
    pauses: list[float] = []
    clock = iter([100.0, 130.0, 200.0, 201.0])

    def wait(pause: float) -> bool:
        pauses.append(pause)
        return len(pauses) == 3

    page = LivePage(tmp_path, print)
    monkeypatch.setattr(LivePage, "_write", lambda self: None)
    monkeypatch.setattr(live_page, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    monkeypatch.setattr(page._end, "wait", wait)
    page._loop()
    assert pauses == [10.0, 270.0, 60.0]


def test_ctrl_c_does_not_reach_the_process_that_writes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    said: list[str] = []
    alone = "import os, sys; sys.exit(None if os.getpgid(0) == os.getpid() else 'in our group')"
    monkeypatch.setattr(live_page, "CODE", alone)
    LivePage(tmp_path, said.append)._write()
    assert not said
