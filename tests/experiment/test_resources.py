"""How large fleets are, and how many workers they have."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from cwbench.experiment.execution import Execution
from cwbench.experiment.resources import Resources


def plan_of(*fleets: int) -> Any:
    return SimpleNamespace(fleets=[[None] * runs for runs in fleets])


def make(device: str = "cpu", **options: Any) -> Resources:
    return Resources({}, Execution(**options), torch.device(device))


def test_workers_are_two_per_run_and_no_more_than_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cwbench.planning.machine.cores", lambda: 16)
    assert make().workers(plan_of(3, 2)) == 6  # one fleet after another
    assert make().workers(plan_of(8)) == 16
    assert make(workers=5).workers(plan_of(8)) == 5
    assert make("cuda").workers(plan_of(3, 2)) == 10  # side by side
    assert make("cuda", side_by_side=1).workers(plan_of(3, 2)) == 6


def test_fleets_are_as_large_as_the_device_likes_or_as_asked() -> None:
    assert (make().fleet_size, make("cuda").fleet_size, make(fleet_size=4).fleet_size) == (
        8,
        100,
        4,
    )
