"""Shrink and perturb: identity, mean and variance, and who gets which noise."""

import math
from collections.abc import Callable

import torch

from cwbench.learner import Trainer
from cwbench.methods.shrink_perturb import ShrinkPerturb, ShrinkPerturbConfig
from cwbench.spec.config import NetworkConfig

MakeTrainer = Callable[..., Trainer]


def changed(trainer: Trainer, shrink: float, perturb: float, **options: str) -> Trainer:
    config = ShrinkPerturbConfig(shrink=shrink, perturb=perturb, **options)  # type: ignore[arg-type]
    ShrinkPerturb(config, trainer).on_task_start(trainer.position)
    return trainer


def state(trainer: Trainer) -> dict[str, torch.Tensor]:
    return {name: x.clone() for name, x in trainer.state().items()}


def test_one_and_zero_change_no_bit(make_trainer: MakeTrainer) -> None:
    trainer = make_trainer([0, 1], position=1)
    trainer.train(2)  # so that targets differ from critics
    before = state(trainer)
    after = state(changed(trainer, 1.0, 0.0, targets="mixed"))
    assert all(torch.equal(before[name], after[name]) for name in before)
    after = state(changed(trainer, 1.0, 0.0))
    for name in before:
        copied = name.startswith("target.") and torch.equal(after[name], before[name[7:]])
        assert copied or torch.equal(before[name], after[name]), name


def test_zero_and_one_are_fresh_weights(make_trainer: MakeTrainer) -> None:
    """Uniform within the Glorot limit: mean 0, variance limit^2 / 3."""
    trainer = make_trainer([0], position=1, network=NetworkConfig(width=128))
    trainer.train(1)
    before = state(trainer)
    after = state(changed(trainer, 0.0, 1.0))
    weight = after["actor.1.weight"]
    limit = math.sqrt(6 / 256)
    assert weight.abs().max() <= limit
    spread = limit / math.sqrt(3 * weight.numel())  # of the mean
    assert weight.mean().abs() < 5 * spread
    # The variance of a uniform square is 4 / 45 limit^4.
    error = limit**2 * math.sqrt(4 / 45 / weight.numel())
    assert abs(weight.var() - limit**2 / 3) < 5 * error
    correlation = (weight * before["actor.1.weight"]).mean() / (limit**2 / 3)
    assert abs(correlation) < 5 / math.sqrt(weight.numel())
    assert after["actor.1.bias"].eq(0).all() and after["actor.norm.scale"].eq(1).all()


def test_torchs_biases_are_pulled_to_a_new_draw(make_trainer: MakeTrainer) -> None:
    """Half of the old one and half of one that is uniform up to 1 / sqrt(fan-in)."""
    trainer = make_trainer([0, 1], position=1, network=NetworkConfig(width=64, init="torch"))
    before = state(trainer)["actor.1.bias"]
    after = state(changed(trainer, 0.5, 0.3))["actor.1.bias"]
    drawn = (after - 0.5 * before) / 0.5
    assert 0.95 / 8 < drawn.abs().max() < 1.0001 / 8
    assert (drawn - before).abs().mean() > 0.05 / 8  # not the one the run started with


def test_targets_and_heads(make_trainer: MakeTrainer) -> None:
    trainer = make_trainer([0], position=1)
    trainer.train(2)
    before = state(trainer)
    critic, target = "critic.1.weight", "target.critic.1.weight"
    assert not torch.equal(before[target], before[critic])
    after = state(changed(trainer, 0.5, 0.3))
    assert torch.equal(after[target], after[critic])
    assert torch.equal(after["actor.4.weight"], before["actor.4.weight"])  # a head


def test_mixed_targets_keep_half_of_their_distance(make_trainer: MakeTrainer) -> None:
    trainer = make_trainer([0], position=1)
    trainer.train(2)
    before = state(trainer)
    after = state(changed(trainer, 0.5, 0.3, targets="mixed"))
    gaps = [x["target.critic.1.weight"] - x["critic.1.weight"] for x in (before, after)]
    torch.testing.assert_close(gaps[1], 0.5 * gaps[0], rtol=0, atol=1e-6)
    assert float(gaps[0].abs().max()) > 1e-4


def test_records_without_the_option_mixed_their_targets() -> None:
    old = {"networks": "both", "shrink": 0.8, "perturb": 0.2}
    assert ShrinkPerturbConfig.from_record(old) == ShrinkPerturbConfig(targets="mixed")
    assert ShrinkPerturbConfig(targets="mixed").record() == old
    assert ShrinkPerturbConfig().record() == old | {"targets": "copied"}


def test_networks_are_chosen(make_trainer: MakeTrainer) -> None:
    trainer = make_trainer([0], position=1)
    before = state(trainer)
    after = state(changed(trainer, 0.5, 0.3, networks="critic"))
    assert torch.equal(before["actor.1.weight"], after["actor.1.weight"])
    assert not torch.equal(before["critic.1.weight"], after["critic.1.weight"])


def test_noise_belongs_to_the_run(make_trainer: MakeTrainer) -> None:
    fleet = state(changed(make_trainer([3, 4], position=1), 0.5, 0.3))["actor.1.weight"]
    alone = state(changed(make_trainer([4], position=1), 0.5, 0.3))["actor.1.weight"]
    assert torch.equal(fleet[1], alone[0]) and not torch.equal(fleet[0], fleet[1])
