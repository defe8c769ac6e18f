"""Measured times on disk."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch

from cwbench.planning.time_cache import DAYS, TimeCache, code_state

CPU = torch.device("cpu")


def test_numbers_come_back_until_they_are_old(tmp_path: Path) -> None:
    file = tmp_path / "times.json"
    TimeCache(file, CPU).put({"fleet": 1}, [1.5, 2.0])
    TimeCache(file, CPU).put({"fleet": 2}, [3.0])
    cache = TimeCache(file, CPU)
    assert cache.get({"fleet": 1}, 2) == [1.5, 2.0] and cache.get({"fleet": 2}, 1) == [3.0]
    assert cache.get({"fleet": 3}, 1) is None
    content = json.loads(file.read_text())
    for entry in content.values():
        entry["measured"] -= 86400 * (DAYS + 1)
    file.write_text(json.dumps(content))
    assert cache.get({"fleet": 1}, 1) is None


def test_what_has_proved_wrong_is_measured_again(tmp_path: Path) -> None:
    file = tmp_path / "times.json"
    for fleet in (1, 2):
        TimeCache(file, CPU).put({"fleet": fleet}, [1.5])
    cache = TimeCache(file, CPU)
    assert cache.get({"fleet": 1}, 1) == [1.5]
    cache.forget_used()
    assert cache.get({"fleet": 1}, 1) is None and cache.get({"fleet": 2}, 1) == [1.5]


@pytest.mark.parametrize(
    "entry",
    [
        {"measured": 4e9},
        {"measured": 4e9, "numbers": 1.5},
        {"measured": 4e9, "numbers": ["x"]},
        {"measured": 4e9, "numbers": []},
        {"measured": 4e9, "numbers": [1.5, 1.5]},
        {"measured": 4e9, "numbers": [-1.5]},
        {"measured": 4e9, "numbers": [math.inf]},
        {"measured": 4e9, "numbers": [math.nan]},
        {"measured": 4e9, "numbers": [10**400]},
        {"measured": "yesterday", "numbers": [1.5]},
        {"numbers": [1.5]},
        [1.5],
        None,
    ],
)
def test_a_damaged_entry_is_measured_again(tmp_path: Path, entry: Any) -> None:
    file = tmp_path / "times.json"
    cache = TimeCache(file, CPU)
    cache.put({"fleet": 1}, [1.5])
    file.write_text(json.dumps(dict.fromkeys(json.loads(file.read_text()), entry)))
    assert cache.get({"fleet": 1}, 1) is None
    cache.put({"fleet": 1}, [2.5])
    assert cache.get({"fleet": 1}, 1) == [2.5]


def test_a_folder_that_cannot_be_written_is_no_problem(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    cache = TimeCache(tmp_path / "file" / "times.json", CPU)
    cache.put({"fleet": 1}, [1.0])
    assert cache.get({"fleet": 1}, 1) is None


def test_code_is_the_same_until_a_file_changes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("cwbench.planning.time_cache.__file__", str(tmp_path / "planning" / "x.py"))
    (tmp_path / "methods").mkdir()
    file = tmp_path / "methods" / "ewc.py"
    file.write_text("a = 1")
    before = code_state()
    assert code_state() == before
    file.write_text("a = 10")
    changed = code_state()
    assert changed != before
    (tmp_path / "methods" / "l2.py").write_text("")
    assert code_state() not in (before, changed)
