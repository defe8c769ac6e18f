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
