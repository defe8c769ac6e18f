"""Runs that are larger than the memory."""

from dataclasses import replace

import pytest
import torch
from planned_fleet import fleet_of
from sample_results import small

from cwbench.planning import estimate
from cwbench.planning.costs import Costs
from cwbench.planning.limits import check_processes, check_weights, does_not_fit
from cwbench.planning.plan import one_group
from cwbench.spec.config import NetworkConfig
from cwbench.spec.errors import UserError
from cwbench.spec.segment import Segment


def test_weights_alone_may_be_too_large() -> None:
    """Four layers of 256 units: an actor of about 200,000 numbers and two such critics."""
    segments = [Segment(small("ewc").setup, seed, ("push",)) for seed in range(100)]
    check_weights(segments, 100 << 20)  # one run is counted, not a hundred
    with pytest.raises(UserError, match=r"one run of ewc needs at least 1\d\.. MiB"):
        check_weights(segments, 1 << 20)


def test_workers_alone_may_be_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """10 GiB are there, nine tenths of which may be taken."""
    monkeypatch.setattr(estimate, "available_bytes", lambda: 10 << 30)
    costs = Costs({}, torch.device("cpu"))
    check_processes(estimate.Memory(costs, one_group, processes=8 << 30))
    with pytest.raises(UserError, match=r"12.0 GiB of memory and 9.0 GiB are free; .* --workers"):
        check_processes(estimate.Memory(costs, one_group, processes=12 << 30))


@pytest.mark.parametrize(("batch_size", "advice"), [(8, "--buffer-size"), (4096, "--batch-size")])
def test_the_advice_is_about_what_takes_most_memory(batch_size: int, advice: str) -> None:
    """60,000 transitions of 116 bytes, and two small networks."""
    fleet, kind = fleet_of("finetuning")
    setup = replace(
        fleet[0].setup,
        sac=replace(fleet[0].setup.sac, batch_size=batch_size),
        network=NetworkConfig(width=32),
    )
    costs = Costs({"finetuning": kind}, torch.device("cpu"))
    memory = estimate.Memory(costs, one_group, processes=0)
    error = does_not_fit(replace(fleet[0], setup=setup), memory)
    assert f"try a smaller {advice}" in str(error)
