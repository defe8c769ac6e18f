"""CompoNet: what modules compose, and that the first one is the plain actor."""

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import layer_norm, leaky_relu
from torch.testing import assert_close

from cwbench.learner.heads import TaskIndex
from cwbench.learner.policy import make_policy
from cwbench.learner.trainer import Trainer
from cwbench.methods.componet import CompoNet, CompoNetConfig, Modules, position_row
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


def test_a_third_module_computes_the_papers_equations() -> None:
    """o = attention(s; m_0, m_1), z from attention(s; m_0, m_1, o), m_2 = o + MLP([z, s])."""
    params = {name: x[0, 0].double() for name, x in fresh(3).items()}
    obs = OBS[0].double()
    earlier = [mean_of(fresh(3), position)[0].double() for position in (0, 1)]
    codes = [torch.tensor(position_row(position, 4)).double() for position in range(3)]

    def attention(head: str, rows: list[Tensor]) -> Tensor:
        """softmax(q K^T / sqrt(d)) over the rows of each state; the values are the rows."""
        q = obs @ params[f"actor.2.{head}.query.weight"] + params[f"actor.2.{head}.query.bias"]
        key = params[f"actor.2.{head}.key.weight"]
        k = torch.stack([(row + code) @ key for row, code in zip(rows, codes, strict=False)], 1)
        share = torch.softmax(torch.einsum("bd,bnd->bn", q, k) / math.sqrt(8), 1)
        return torch.einsum("bn,bna->ba", share, torch.stack(rows, 1))

    o = attention("output", earlier)
    row = attention("input", [*earlier, o])
    z = row @ params["actor.2.input.value.weight"] + params["actor.2.input.value.bias"]
    x = torch.cat([z, obs], 1)
    for layer in range(3):
        own = f"actor.2.internal.{layer}"
        x = x @ params[f"{own}.weight"] + params[f"{own}.bias"]
        x = leaky_relu(x, 0.2) if layer else torch.tanh(layer_norm(x, [16], eps=1e-3))
    internal = x @ params["actor.2.internal.3.weight"] + params["actor.2.internal.3.bias"]
    assert_close(mean_of(fresh(3), 2)[0].double(), o + internal, rtol=0, atol=1e-5)


def test_the_spread_is_a_modules_own() -> None:
    policy, tasks = make_policy(12, 4, CONFIG, Modules), TaskIndex.single(2, 2, 7, CPU)
    before = policy(fresh(3), OBS, tasks)[1]
    for position, same in ((0, True), (1, True), (2, False)):
        last = f"actor.{position}.{'spread' if position else 'actor'}.{CONFIG.layers}.bias"
        other = fresh(3)
        other[last] = other[last] + 1
        assert torch.equal(policy(other, OBS, tasks)[1], before) is same


def test_critics_start_again_in_every_later_task(make_trainer: Callable[..., Trainer]) -> None:
    trainer = make_trainer([0, 1], position=1)
    before = trainer.params["critic.1.weight"].detach().clone()
    method = CompoNet(CompoNetConfig(), trainer)
    method.on_task_start(0)
    assert torch.equal(trainer.params["critic.1.weight"], before)
    method.on_task_start(1)
    fresh = trainer.fresh_trunk("critic", "@1")["critic.1.weight"]
    assert torch.equal(trainer.params["critic.1.weight"], fresh)
    assert not torch.equal(fresh, before)


def test_positions_are_encoded_by_sines_and_cosines() -> None:
    assert position_row(0, 4) == [0, 1, 0, 1]
    row = [math.sin(3), math.cos(3), math.sin(0.03), math.cos(0.03)]
    assert_close(torch.tensor(position_row(3, 4)), torch.tensor(row))
