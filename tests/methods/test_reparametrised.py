"""Weights as a function of own parameters: the base class, with the identity as the function."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from cwbench.experiment.conformance import TWO, require_same
from cwbench.learner import MethodConfig, Trainer
from cwbench.methods._reparametrised import Reparametrised, Weights, join, split, weighted_sum
from cwbench.spec.config import SACConfig

MakeTrainer = Callable[..., Trainer]


class Identity(Reparametrised[MethodConfig]):
    """phi is the actor."""

    def on_task_start(self, position: int) -> None:
        names = self.trainer.group("actor")
        self.start_phi({name: self.current(self.trainer.params, name) for name in names})

    def centre(self) -> Weights:
        return self.phi

    def pull_back(self, grads: Weights) -> Weights:
        return grads


def identity(make_trainer: MakeTrainer, seeds: list[int], **options: object) -> Trainer:
    trainer = make_trainer(
        seeds, method=lambda trainer: Identity(MethodConfig(), trainer), **options
    )
    trainer.method.on_task_start(trainer.position)  # type: ignore[attr-defined]
    return trainer


@pytest.mark.parametrize("actor_every", [1, 2])
def test_the_identity_is_fine_tuning_bit_for_bit(
    make_trainer: MakeTrainer, actor_every: int
) -> None:
    sac = SACConfig(batch_size=16, actor_every=actor_every)
    plain, own = make_trainer([0, 1], sac=sac), identity(make_trainer, [0, 1], sac=sac)
    for trainer in (plain, own):
        trainer.train(5)
    method = own.method
    assert isinstance(method, Identity)
    method.on_task_end(0)
    for name, x in plain.state().items():
        assert torch.equal(x, own.state()[name]), name
    for name, x in method.policy_weights(0).items():
        assert torch.equal(x, plain.params[name])


def test_own_parameters_are_clipped_like_the_trainer_s(make_trainer: MakeTrainer) -> None:
    sac = SACConfig(batch_size=16, clip_norm=1e-3)
    plain, own = make_trainer([0, 1], sac=sac), identity(make_trainer, [0, 1], sac=sac)
    for trainer in (plain, own):
        trainer.train(3)
    own.method.on_task_end(0)  # type: ignore[attr-defined]
    for name, x in plain.state().items():
        torch.testing.assert_close(x, own.state()[name])


def test_old_heads_stay_and_only_the_current_one_is_trained(make_trainer: MakeTrainer) -> None:
    trainer = identity(make_trainer, [0], position=2)
    before = trainer.params["actor.4.weight"].detach().clone()
    trainer.train(3)
    trainer.method.on_task_end(2)  # type: ignore[attr-defined]
    after = trainer.params["actor.4.weight"].detach()
    assert torch.equal(before[:, :2], after[:, :2])
    assert (before[:, 2] != after[:, 2]).all()


def test_a_restored_method_continues_with_the_same_bits(make_trainer: MakeTrainer) -> None:
    whole, parts = identity(make_trainer, [0, 1]), identity(make_trainer, [0, 1])
    whole.train(6)
    parts.train(4)
    method = parts.method
    assert isinstance(method, Identity)
    saved = {name: x.clone() for name, x in method.state().items()}
    backwards = dict(reversed(saved.items()))  # a file's order
    resumed = Identity(MethodConfig(), parts)
    resumed.load_state(backwards)
    parts.method = resumed
    parts.train(2)
    expected = whole.method.state()  # type: ignore[attr-defined]
    assert resumed.state().keys() == expected.keys()
    for name, x in resumed.state().items():
        assert torch.equal(x, expected[name]), name


@pytest.mark.parametrize("reset", ["actor", "actor,heads"])
def test_what_is_reset_is_trained_from_there(make_trainer: MakeTrainer, reset: str) -> None:
    trainer = make_trainer([0], position=1)
    method = Identity(MethodConfig(reset=reset), trainer)
    method.begin_task(1)
    fresh = trainer.fresh_trunk("actor", "@1")
    for name, x in fresh.items():
        torch.testing.assert_close(method.phi[name], x)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["vcl", "cka-rl", "csp"])
def test_with_delayed_actor_updates_a_member_equals_the_run_alone(
    name: str, toy_run: Any, tmp_path: Path
) -> None:
    sac = {"actor_every": 2}
    fleet, _, _ = toy_run(tmp_path / "fleet", name, seeds=(0, 1), tasks=TWO, sac=sac)
    alone, plan, _ = toy_run(tmp_path / "alone", name, seeds=(1,), tasks=TWO, sac=sac)
    require_same(fleet, alone, plan.segments)


def random(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


def test_joined_weights_split_into_themselves() -> None:
    weights = {"a": random(2, 3, 4), "b": random(2, 5)}
    flat = join(weights.values())
    assert flat.shape == (2, 17)
    assert all(torch.equal(x, weights[name]) for name, x in split(flat, weights).items())


def test_a_weighted_sum_is_the_product_of_matrices() -> None:
    shares, vectors = random(2, 3), random(2, 3, 7)
    expected = torch.einsum("rn,rnp->rp", shares, vectors)
    torch.testing.assert_close(weighted_sum(shares, vectors), expected)
