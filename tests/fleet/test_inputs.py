"""One damaged file fails one run."""

from pathlib import Path
from typing import Any

import pytest
from faults import DAMAGE


@pytest.mark.parametrize("damage", ["empty", "a list"])
def test_a_damaged_record_fails_only_its_own_run(damage: str, toy_run: Any, tmp_path: Path) -> None:
    """The two runs would continue as one fleet."""
    toy_run(tmp_path, seeds=(0, 1), stop_after=12)  # in the second of three tasks
    [record] = tmp_path.glob("segments/finetuning-2-*-s0-*/segment.json")
    DAMAGE[damage](record)
    _, _, outcome = toy_run(tmp_path, seeds=(0, 1))
    [(folder, message)] = outcome.failed.items()
    assert folder == record.parent.name and "segment.json" in message
    assert (outcome.trained, outcome.skipped) == (2, 1)  # the other run's last two tasks
