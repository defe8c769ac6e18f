"""The page during training."""

import threading
from pathlib import Path

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


def test_ctrl_c_does_not_reach_the_process_that_writes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    said: list[str] = []
    alone = "import os, sys; sys.exit(None if os.getpgid(0) == os.getpid() else 'in our group')"
    monkeypatch.setattr(live_page, "CODE", alone)
    LivePage(tmp_path, said.append)._write()
    assert not said
