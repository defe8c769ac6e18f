"""Environment variables that are read, and those that are set for a while."""

import os
from pathlib import Path

import pytest

from cwbench.spec.environment import cache_folder, environment


def test_the_cache_is_in_the_users_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CWBENCH_CACHE", "/chosen")
    assert cache_folder() == Path("/chosen")
    monkeypatch.delenv("CWBENCH_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert cache_folder() == Path("/somewhere/cwbench")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == Path.home() / ".cache" / "cwbench"


def test_variables_are_as_before_after_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CWBENCH_SET", "old")
    monkeypatch.delenv("CWBENCH_UNSET", raising=False)
    with pytest.raises(ZeroDivisionError), environment({"CWBENCH_SET": "a", "CWBENCH_UNSET": "b"}):
        assert (os.environ["CWBENCH_SET"], os.environ["CWBENCH_UNSET"]) == ("a", "b")
        _ = 1 / 0
    assert os.environ["CWBENCH_SET"] == "old" and "CWBENCH_UNSET" not in os.environ
