"""CompoNet: what modules compose, and that the first one is the plain actor."""

import math

import torch
from torch import Tensor
from torch.testing import assert_close

from cwbench.learner.heads import TaskIndex
from cwbench.learner.policy import make_policy
from cwbench.methods.componet import Modules, position_row
from cwbench.spec.config import NetworkConfig

SEEDS, CPU = [3, 4], torch.device("cpu")
CONFIG = NetworkConfig(hidden="16,12,8")
OBS = torch.randn(2, 7, 12, generator=torch.Generator().manual_seed(0))


def mean_of(params: dict[str, Tensor], position: int) -> Tensor:
    mean: Tensor = make_policy(12, 4, CONFIG, Modules)(
        params, OBS, TaskIndex.single(position, 2, 7, CPU)
    )[0]
    return mean


def fresh(positions: int) -> dict[str, Tensor]:
    modules = Modules(12, 4, CONFIG)
    return {k: x for p in range(positions) for k, x in modules.init_head(SEEDS, p).items()}


def silenced(params: dict[str, Tensor], position: int) -> dict[str, Tensor]:
    """Without the output of a module's internal policy."""
    last = f"actor.{position}.internal.{CONFIG.layers}."
    return {name: 0 * x if name.startswith(last) else x for name, x in params.items()}


def test_the_first_module_is_the_plain_actor() -> None:
    policy = make_policy(12, 4, CONFIG)
    params = policy.network.init_trunk(SEEDS) | policy.network.init_head(SEEDS, 0)
    mean, log_std = policy(params, OBS, TaskIndex.single(0, 2, 7, CPU))
    composed = make_policy(12, 4, CONFIG, Modules)(fresh(1), OBS, TaskIndex.single(0, 2, 7, CPU))
    assert_close((mean, log_std), composed)


def test_a_silent_second_module_acts_as_the_first() -> None:
    params = silenced(fresh(2), 1)
    assert torch.equal(mean_of(params, 1), mean_of(params, 0))


def test_without_keys_a_module_starts_from_the_mean_of_earlier_ones() -> None:
    params = silenced(fresh(3), 2)
    params["actor.2.output.key.weight"].zero_()
    assert_close(mean_of(params, 2), (mean_of(params, 0) + mean_of(params, 1)) / 2)


def test_equal_earlier_policies_are_kept_whatever_the_attention() -> None:
    params = silenced(silenced(fresh(3), 1), 2)  # module 1 repeats module 0
    assert_close(mean_of(params, 2), mean_of(params, 0))


def test_later_modules_leave_earlier_policies_alone() -> None:
    params = fresh(2)
    before = mean_of(params, 1)
    assert torch.equal(mean_of(params | Modules(12, 4, CONFIG).init_head(SEEDS, 2), 1), before)


def test_positions_are_encoded_by_sines_and_cosines() -> None:
    assert position_row(0, 4) == [0, 1, 0, 1]
    row = [math.sin(3), math.cos(3), math.sin(0.03), math.cos(0.03)]
    assert_close(torch.tensor(position_row(3, 4)), torch.tensor(row))
