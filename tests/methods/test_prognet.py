"""Progressive networks: what columns read, and that one column is the plain actor."""

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from cwbench.learner.heads import TaskIndex
from cwbench.learner.policy import make_policy
from cwbench.methods.prognet import Columns
from cwbench.spec.config import NetworkConfig

SEEDS, CPU = [3, 4], torch.device("cpu")
CONFIG = NetworkConfig(hidden="16,12,8")
OBS = torch.randn(2, 7, 12, generator=torch.Generator().manual_seed(0))


def outputs(params: dict[str, Tensor], position: int) -> Tensor:
    tasks = TaskIndex.single(position, 2, 7, CPU)
    return torch.cat(make_policy(12, 4, CONFIG, Columns)(params, OBS, tasks), -1)


def fresh(positions: int) -> dict[str, Tensor]:
    columns = Columns(12, 4, CONFIG)
    return {k: x for p in range(positions) for k, x in columns.init_head(SEEDS, p).items()}


def plain_output(position: int) -> Tensor:
    """Of the actor that `independent` starts a position with."""
    policy = make_policy(12, 4, CONFIG)
    params = policy.network.init_trunk(SEEDS, f"@{position}" if position else "")
    params |= policy.network.init_head(SEEDS, position)
    return torch.cat(policy(params, OBS, TaskIndex.single(0, 2, 7, CPU)), -1)


def test_the_first_column_is_the_plain_actor() -> None:
    assert_close(outputs(fresh(1), 0), plain_output(0))


def test_without_laterals_every_column_is_the_plain_actor() -> None:
    params = {name: 0 * x if ".lateral." in name else x for name, x in fresh(3).items()}
    for position in range(3):
        assert_close(outputs(params, position), plain_output(position))


@pytest.mark.parametrize("layer", [0, 1])
@pytest.mark.parametrize("column", [0, 1])
def test_a_column_reads_all_layers_of_earlier_ones_but_the_last(column: int, layer: int) -> None:
    """In a published release the first column's features are never read."""
    params = fresh(3)
    before = outputs(params, 2)
    params[f"actor.{column}.actor.{layer}.weight"] *= 1.5
    assert not torch.allclose(outputs(params, 2), before, atol=1e-4)


def test_later_columns_leave_earlier_policies_alone() -> None:
    params = fresh(2)
    before = outputs(params, 1)
    params |= Columns(12, 4, CONFIG).init_head(SEEDS, 2)
    assert torch.equal(outputs(params, 1), before)
    last = fresh(3)["actor.0.actor.2.weight"]  # read by column 0's output alone
    params["actor.0.actor.2.weight"] = 2 * last
    assert torch.equal(outputs(params, 1), before)
