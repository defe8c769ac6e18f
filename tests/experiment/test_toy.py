"""Runs of seconds on the point mass: what they are given, and how they are stopped."""

import os
import signal

import pytest

from cwbench.experiment import toy
from cwbench.experiment.build import load_method
from cwbench.spec.config import GROUPS
from cwbench.spec.options import field_names


@pytest.mark.parametrize("name", toy.OPTIONS)
def test_a_methods_options_exist(name: str) -> None:
    _, entry = load_method(name)
    known = field_names(entry.method.config_class, *GROUPS.values())
    assert toy.OPTIONS[name].keys() <= known


def test_a_signal_comes_after_n_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "kill", lambda *args: sent.append(args))
    progress = toy.Stopping(2).progress(None)
    for chunk in range(4):
        progress.advance(None)
        assert len(sent) == (chunk >= 1)
    assert sent == [(os.getpid(), signal.SIGUSR1)]
    never = toy.Stopping(0).progress(None)
    for _ in range(4):
        never.advance(None)
    assert len(sent) == 1
