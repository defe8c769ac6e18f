"""Which fleets fit into memory."""

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
