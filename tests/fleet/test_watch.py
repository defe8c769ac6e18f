"""What the terminal shows of fleets that other processes train."""

from pathlib import Path
from typing import Any

import pytest

from cwbench.fleet.progress import Row
from cwbench.fleet.watch import now_and_then, rows_on_disk


def test_rows_come_from_status_files(toy_run: Any, tmp_path: Path) -> None:
    tasks = ("reach-0-1", "reach-2-1")
    store, plan, _ = toy_run(tmp_path, seeds=(0, 1), tasks=tasks, stop_after=14)
    assert [fleet[0].position for fleet in plan.fleets] == [0, 1]
    first, second = rows_on_disk(store, plan.fleets)
    assert (first.method, first.task, first.runs) == ("finetuning", "1 reach-0-1", 2)
    assert first.step == first.steps == 60 and len(first.successes) == 2
    assert 0 < second.step < 60 and second.speed is None  # nobody trains it now
    for number, segment in enumerate(plan.fleets[1]):
        now = {"step": 30, "started": 100.0, "started_step": 10, "success": number / 2}
        store.folder(segment).set_status("running", updated=104.0, **now)
    assert rows_on_disk(store, plan.fleets)[1:] == [
        Row("finetuning", "2 reach-2-1", 2, 30, 60, [0.0, 0.5], 2 * (30 - 10) / 4)
    ]


def test_files_are_read_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[int] = []

    def look() -> list[Row]:
        looks.append(1)
        return []

    cached = now_and_then(look)
    assert cached() == cached() == []
    assert len(looks) == 1
    monkeypatch.setattr("cwbench.fleet.watch.LOOK_SECONDS", -1.0)
    cached()
    assert len(looks) == 2
