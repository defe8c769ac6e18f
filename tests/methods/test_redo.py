"""ReDo: which units are dormant, and what a renewed one is."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from cwbench.learner import Trainer
from cwbench.methods.redo import ReDo, ReDoConfig
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


@pytest.mark.parametrize("layer", [1, 2, 3])
def test_redo_renews_a_silent_unit_and_changes_no_output(
    make_trainer: MakeTrainer, layer: int
) -> None:
    trainer = make_trainer([0, 1])
    trainer.train(2)
    silence(trainer, layer, 5)
    before = outputs(trainer)
    moments = {name: x.clone() for name, x in trainer.optimizer.square.items()}
    method = ReDo(ReDoConfig(tau=0.0), trainer)  # silent units are at most that active
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


def test_units_are_dormant_relative_to_their_layer(make_trainer: MakeTrainer) -> None:
    """Those at most as active as their layer is on average, on the same transitions."""
    trainer = make_trainer([0])
    trainer.params["actor.2.weight"].detach().mul_(0.01)  # a quiet layer, not a dormant one
    batch = trainer.replay.sample_once(256, "redo-0")
    layers = [hidden[0].abs().mean(0) for hidden in trainer.hidden("actor", batch)]
    expected = [active <= active.mean() for active in layers]
    ReDo(ReDoConfig(tau=1.0), trainer).at_interval()
    for layer, dormant in enumerate(expected):
        outgoing = trainer.params[f"actor.{layer + 1}.weight"].detach().view(16, -1)
        assert torch.equal(outgoing.eq(0).all(1), dormant)
        assert dormant.any() and not dormant.all()


def test_dormant_units_of_neighbouring_layers_are_not_connected(make_trainer: MakeTrainer) -> None:
    """The first one's outgoing weights are zero, that into the other new unit included."""
    trainer = make_trainer([0])
    silence(trainer, 1, 5)
    silence(trainer, 2, 7)
    ReDo(ReDoConfig(tau=0.0), trainer).at_interval()
    assert trainer.params["actor.2.weight"].detach()[0, 5].eq(0).all()
    assert trainer.params["actor.2.weight"].detach()[0, :, 7].count_nonzero() == 15


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
