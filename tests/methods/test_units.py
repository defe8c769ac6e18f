"""ReDo and continual backpropagation: which units go, and what a new one is."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from cwbench.learner import TaskIndex, Trainer
from cwbench.methods._plasticity import activity, renew
from cwbench.methods.continual_backprop import (
    ContinualBackprop,
    ContinualBackpropConfig,
    least_useful,
)
from cwbench.methods.redo import ReDo, ReDoConfig, dormancy
from cwbench.spec.config import NetworkConfig

MakeTrainer = Callable[..., Trainer]


def outputs(trainer: Trainer) -> tuple[Tensor, Tensor]:
    batch = trainer.replay.sample_once(32, "test")
    mean, _ = trainer.policy(trainer.params, batch.obs, batch.tasks)
    q = trainer.q(trainer.params, batch.obs, batch.action, batch.tasks)
    return mean.detach(), q.detach()


def silence(trainer: Trainer, layer: int, unit: int) -> None:
    """A unit that gives 0 whatever comes in, in every network of the first run."""
    for network in ("actor", "critic"):
        trainer.params[f"{network}.{layer}.weight"].detach()[0, ..., unit] = 0
        trainer.params[f"{network}.{layer}.bias"].detach()[0, ..., unit] = 0


def test_scores_average_one_and_equals_are_not_dormant() -> None:
    active = torch.rand(3, 2, 16, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(dormancy(active).mean(-1), torch.ones(3, 2))
    assert (dormancy(torch.full((1, 5), 0.3)) > 0.99).all()


@pytest.mark.parametrize("layer", [1, 2, 3])
def test_redo_renews_a_silent_unit_and_changes_no_output(
    make_trainer: MakeTrainer, layer: int
) -> None:
    trainer = make_trainer([0, 1])
    trainer.train(2)
    silence(trainer, layer, 5)
    before = outputs(trainer)
    moments = {name: x.clone() for name, x in trainer.optimizer.square.items()}
    method = ReDo(ReDoConfig(tau=1e-6), trainer)
    method.at_interval()
    weight = trainer.params[f"actor.{layer}.weight"].detach()
    assert weight[0, :, 5].abs().max() > 0  # new incoming weights
    following = f"actor.{layer + 1}.weight"
    assert trainer.params[following].detach()[0, ..., 5, :].eq(0).all()
    for now, then in zip(outputs(trainer), before, strict=True):
        torch.testing.assert_close(now, then, rtol=0, atol=1e-6)
    for name, then in moments.items():  # cleared for exactly this unit
        now, expected = trainer.optimizer.square[name], then.clone()
        if name in (f"actor.{layer}.weight", f"actor.{layer}.bias", f"critic.{layer}.weight",
                    f"critic.{layer}.bias"):  # fmt: skip
            expected[0, ..., 5] = 0
        elif name in (following, f"critic.{layer + 1}.weight"):
            expected[0, ..., 5, :] = 0
        assert torch.equal(now, expected), name


def test_a_first_layer_without_layer_norm_is_renewed_too(make_trainer: MakeTrainer) -> None:
    trainer = make_trainer([0], network=NetworkConfig(width=16, layer_norm="off"))
    silence(trainer, 0, 5)
    before = outputs(trainer)
    ReDo(ReDoConfig(tau=1e-6), trainer).at_interval()
    assert trainer.params["actor.0.weight"].detach()[0, :, 5].abs().max() > 0
    for now, then in zip(outputs(trainer), before, strict=True):
        torch.testing.assert_close(now, then, rtol=0, atol=1e-6)


def test_no_unit_is_dormant_below_zero(make_trainer: MakeTrainer) -> None:
    trainer = make_trainer([0])
    before = {name: x.clone() for name, x in trainer.state().items()}
    ReDo(ReDoConfig(tau=-1.0), trainer).at_interval()
    assert all(torch.equal(before[name], x) for name, x in trainer.state().items())


def test_renewing_reaches_every_head_and_the_targets(make_trainer: MakeTrainer) -> None:
    trainer = make_trainer([0], position=1)
    units = torch.zeros(1, 2, 16, dtype=torch.bool)
    units[0, 1, 3] = True  # of the second critic only
    fresh = torch.full((1, 2, 16, 1), 7.0)
    renew(trainer, "critic", 3, units, fresh)
    for table in (trainer.params, trainer.target):
        assert table["critic.3.weight"].detach()[0, 1, :, 3].eq(7).all()
        assert table["critic.4.weight"].detach()[0, 1, :, 3].eq(0).all()  # both heads
        assert table["critic.4.weight"].detach()[0, 0].ne(0).all()


def cbp(trainer: Trainer, **options: Any) -> ContinualBackprop:
    method = ContinualBackprop(ContinualBackpropConfig(**options), trainer)
    trainer.method = method
    method.on_task_start(0)
    return method


def test_the_least_useful_mature_unit_is_marked() -> None:
    utility = torch.tensor([[3.0, 1.0, 2.0, 0.5], [1.0, 2.0, 3.0, 4.0]])
    mature = torch.tensor([[True, True, True, False], [False] * 4])
    marked = least_useful(utility, mature)
    assert marked.tolist() == [[False, True, False, False], [False] * 4]


def test_a_unit_without_outgoing_weights_goes_first(make_trainer: MakeTrainer) -> None:
    trainer = make_trainer([0])
    trainer.params["actor.2.weight"].detach()[:, 9] = 0  # what unit 9 of layer 1 gives
    method = cbp(trainer, replacement_rate=1.0, maturity=0, every=1, networks="actor")
    method.at_interval()
    assert method.age["actor.1"][0].tolist() == [float(unit != 9) for unit in range(16)]
    assert trainer.params["actor.2.weight"].detach()[0, 9].eq(0).all()


def test_replacements_come_at_their_rate(make_trainer: MakeTrainer) -> None:
    trainer = make_trainer([0, 1])
    method = cbp(trainer, replacement_rate=0.01, maturity=0, every=2)
    counts = dict.fromkeys(method.age, 0)
    for _ in range(20):
        method.at_interval()
        for unit, age in method.age.items():
            counts[unit] += int((age == 0).sum())
    # 0.01 * 16 units * 40 updates = 6.4 of each layer, run and twin.
    expected = {unit: 6 * age[..., 0].numel() for unit, age in method.age.items()}
    assert counts == expected


def test_nothing_is_replaced_before_maturity(make_trainer: MakeTrainer) -> None:
    one, other = make_trainer([0]), make_trainer([0])
    cbp(one, maturity=10**6, every=1, samples=4)
    for trainer in (one, other):
        trainer.train(4)
    assert all(torch.equal(x, other.state()[name]) for name, x in one.state().items())


def test_the_interval_is_kept_across_calls(make_trainer: MakeTrainer) -> None:
    trainer = make_trainer([0])
    method = ReDo(ReDoConfig(every=4), trainer)
    seen: list[int] = []
    method.at_interval = lambda: seen.append(trainer.updates)  # type: ignore[method-assign]
    trainer.method = method
    for updates in (3, 3, 7):
        trainer.train(updates)
    assert seen == [4, 8, 12]


def test_activity_is_the_mean_size(make_trainer: MakeTrainer) -> None:
    trainer = make_trainer([0, 1])
    batch = trainer.replay.sample_once(8, "test")
    layers = activity(trainer, "critic", batch)
    assert [tuple(layer.shape) for layer in layers] == [(2, 2, 16)] * 4
    tasks = TaskIndex.single(0, 2, 8, trainer.device)
    weight = trainer.params["critic.4.weight"][:, :, 0], trainer.params["critic.4.bias"][:, :, 0]
    hidden = trainer.critic.hidden(trainer.params, torch.cat([batch.obs, batch.action], -1))
    q = (hidden[-1] @ weight[0] + weight[1].unsqueeze(-2)).squeeze(-1)
    torch.testing.assert_close(q, trainer.q(trainer.params, batch.obs, batch.action, tasks))
