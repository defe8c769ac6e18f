"""Which fleets fit, and how long several take."""

import dataclasses

import pytest
import torch
from planned_fleet import ROWS, fleet_of

from cwbench.planning import estimate
from cwbench.planning.costs import SCRATCH_BYTES, Costs
from cwbench.planning.plan import groups_on_cuda


def test_a_run_too_large_for_its_device_keeps_its_replay_on_the_host(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Planned as for a GPU; the free memory of both is made up, what a fleet needs is not."""
    fleet, kind = fleet_of("finetuning")
    costs = Costs({"finetuning": kind}, torch.device("cuda"))
    replay = costs.replay_bytes(fleet[:1])
    tensors = costs.fleet_bytes(fleet[:1]) - replay
    assert replay == ROWS * 116  # 29 numbers of 4 bytes

    def fits(runs: int, on_device: int, on_host: int) -> bool:
        free = {"cuda": on_device, "cpu": on_host}
        monkeypatch.setattr(estimate, "free_bytes", lambda place, workers: free[place.type])
        return estimate.Memory(costs, 1, groups_on_cuda).fits(fleet[:runs])

    both = 2 * (tensors + replay) - SCRATCH_BYTES  # two runs of one fleet share it
    assert fits(2, both, 0) and not fits(2, both - 1, both)
    assert fits(1, tensors, replay)
    assert not fits(1, tensors - 1, replay) and not fits(1, tensors, replay - 1)


def needs(updates: float, workers: float, pool: float) -> estimate.FleetNeeds:
    return estimate.FleetNeeds(
        1, 1, 1, bytes=1, disk_bytes=1,
        update_seconds=updates, collect_seconds=workers, pool_seconds=pool,
    )  # fmt: skip


def test_a_group_updates_while_others_collect() -> None:
    alone = needs(10, 6, 1)
    assert alone.alone == 16
    assert dataclasses.replace(alone, groups=3).alone == 12
    assert dataclasses.replace(alone, groups=3, pool_seconds=14).alone == 14  # and evaluation


def test_side_by_side_what_is_needed_most_decides() -> None:
    """Two runs of two tasks, and a fleet of its own."""
    fleet, _ = fleet_of("finetuning")
    second = fleet[:2]
    first = [segment.parent for segment in second if segment.parent]
    other = [dataclasses.replace(segment, seed=9) for segment in first]
    fleets = [first, other, second]

    def seconds(side_by_side: int, *each: tuple[float, float, float]) -> float:
        found = [needs(*one) for one in each]
        return estimate.seconds_together(fleets, found, side_by_side)

    assert seconds(1, (10, 5, 1), (20, 5, 1), (10, 5, 1)) == 55  # one after another
    assert seconds(3, (10, 5, 1), (20, 5, 1), (10, 5, 1)) == 30  # the chain of two tasks
    assert seconds(3, (10, 5, 1), (50, 5, 1), (10, 5, 1)) == 55  # the long fleet
    assert seconds(3, (10, 5, 20), (10, 5, 20), (10, 5, 20)) == 60  # workers
    large = [[segment] * 100 for segment in (first[0], other[0], second[0])]
    found = [needs(10, 1, 1)] * 3
    assert estimate.seconds_together(large, found, 3) == 30  # the device, full with one of them
    assert seconds(2, (10, 5, 1), (40, 5, 1), (50, 5, 1)) == 70  # the chain again
