"""Measured times on disk."""

import json
from pathlib import Path

import pytest
import torch

from cwbench.planning.time_cache import DAYS, TimeCache, cache_folder

CPU = torch.device("cpu")


def test_numbers_come_back_until_they_are_old(tmp_path: Path) -> None:
    file = tmp_path / "times.json"
    TimeCache(file, CPU).put({"fleet": 1}, [1.5, 2.0])
    TimeCache(file, CPU).put({"fleet": 2}, [3.0])
    cache = TimeCache(file, CPU)
    assert cache.get({"fleet": 1}) == [1.5, 2.0] and cache.get({"fleet": 2}) == [3.0]
    assert cache.get({"fleet": 3}) is None
    content = json.loads(file.read_text())
    for entry in content.values():
        entry["measured"] -= 86400 * (DAYS + 1)
    file.write_text(json.dumps(content))
    assert cache.get({"fleet": 1}) is None


def test_a_folder_that_cannot_be_written_is_no_problem(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    cache = TimeCache(tmp_path / "file" / "times.json", CPU)
    cache.put({"fleet": 1}, [1.0])
    assert cache.get({"fleet": 1}) is None


def test_the_folder_is_the_users(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CWBENCH_CACHE", str(tmp_path))
    assert cache_folder() == tmp_path
    monkeypatch.delenv("CWBENCH_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "cwbench"
