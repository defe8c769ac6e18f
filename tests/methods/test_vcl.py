"""VCL: the divergence, its gradient, and when it is fine-tuning."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from cwbench.learner import Trainer
from cwbench.methods.vcl import RHO, VCL, VCLConfig, divergence, divergence_gradient
from cwbench.spec.errors import UserError
from cwbench.spec.options import checked

MakeTrainer = Callable[..., Trainer]


def vcl(make_trainer: MakeTrainer, seeds: list[int], **options: Any) -> tuple[Trainer, VCL]:
    trainer = make_trainer(seeds)
    method = VCL(VCLConfig(**options), trainer)
    trainer.method = method
    method.on_task_start(0)
    return trainer, method


def second_task(make_trainer: MakeTrainer, first: VCL, **options: Any) -> tuple[Trainer, VCL]:
    first.on_task_end(0)
    parent = first.trainer
    trainer = make_trainer(parent.seeds, position=1, inherited=parent.state())
    method = VCL(VCLConfig(**options), trainer)
    method.load_state(first.state())
    trainer.method = method
    method.on_task_start(1)
    return trainer, method


def kl(mean: float, rho: float, mean0: float, rho0: float) -> float:
    values = [[torch.full((1, 1), value)] for value in (mean, rho, mean0, rho0)]
    return float(divergence(*values))


def test_divergence_matches_the_closed_form_of_two_gaussians() -> None:
    assert kl(0.3, -1.0, 0.3, -1.0) == pytest.approx(0, abs=1e-7)
    assert kl(1.0, 0.0, 0.0, 0.0) == pytest.approx(0.5)
    p = torch.distributions.Normal(0.5, torch.tensor(-2.0 / 2).exp())
    q = torch.distributions.Normal(-1.0, torch.tensor(1.0 / 2).exp())
    expected = float(torch.distributions.kl_divergence(p, q))
    assert kl(0.5, -2.0, -1.0, 1.0) == pytest.approx(expected, rel=1e-5)


def test_its_gradient_is_autograd_s(double_precision: None) -> None:
    x = [torch.randn(2, 3, 4, requires_grad=n < 2) for n in range(4)]
    expected = torch.autograd.grad(divergence(*([part] for part in x)).sum(), x[:2])
    for got, want in zip(divergence_gradient(*x), expected, strict=True):
        torch.testing.assert_close(got, want)


def test_without_variance_and_divergence_it_is_fine_tuning(make_trainer: MakeTrainer) -> None:
    plain = make_trainer([0, 1])
    trainer, method = vcl(make_trainer, [0, 1], init_log_variance=-1000.0, coef=0.0)
    for one in (plain, trainer):
        one.train(5)
    method.on_task_end(0)
    assert all(torch.equal(x, trainer.state()[name]) for name, x in plain.state().items())


@pytest.mark.parametrize("coef", [0.0, 1.0])
def test_the_smallest_variance_allows_a_second_task(make_trainer: MakeTrainer, coef: float) -> None:
    with pytest.raises(UserError, match="the smallest value is -40"):
        checked(VCLConfig, "init_log_variance", -40.1)
    options = {"init_log_variance": checked(VCLConfig, "init_log_variance", -40.0), "coef": coef}
    _, first = vcl(make_trainer, [0, 1], **options)
    first.trainer.train(3)
    trainer, method = second_task(make_trainer, first, **options)
    trainer.train(5)
    assert all(x.isfinite().all() for x in (trainer.state() | method.state()).values())


def test_weights_are_drawn_with_their_means_and_variances(make_trainer: MakeTrainer) -> None:
    trainer, method = vcl(make_trainer, [0], init_log_variance=-4.0)
    draws = []
    for update in range(200):
        trainer.streams.seek(update)
        draws.append(method.weights()["actor.1.weight"])
    gap = torch.stack(draws) - method.phi["actor.1.weight"]  # 51,200 numbers
    assert float(gap.mean()) == pytest.approx(0, abs=5 * 0.1353 / 51_200**0.5)
    assert float(gap.std()) == pytest.approx(0.1353, rel=0.02)  # e^-2, and five standard errors


def test_gradients_are_those_of_the_drawn_weights(
    make_trainer: MakeTrainer, double_precision: None
) -> None:
    """By finite differences of a quadratic of the weights, for a draw that stays the same."""
    trainer, method = vcl(make_trainer, [0, 1])

    def loss() -> torch.Tensor:
        w = method.weights()["actor.2.weight"]
        return ((w - 0.3) ** 2).sum()

    drawn = method.weights()
    method.write(trainer.params, drawn)
    grads = {name: torch.zeros_like(w) for name, w in drawn.items()}
    grads["actor.2.weight"] = 2 * (drawn["actor.2.weight"] - 0.3)
    pulled = method.pull_back(grads)
    for key in ("actor.2.weight", f"{RHO}actor.2.weight"):
        entry = method.phi[key][1, 3]
        steps = []
        for step in (1e-6, -2e-6):
            entry[4] += step
            steps.append(loss())
        entry[4] += 1e-6
        torch.testing.assert_close(
            pulled[key][1, 3, 4], (steps[0] - steps[1]) / 2e-6, rtol=1e-5, atol=1e-7
        )


def test_the_second_task_starts_at_its_prior(make_trainer: MakeTrainer) -> None:
    """Means and variances of shared weights; the head's variances start again."""
    _, first = vcl(make_trainer, [0, 1])
    first.trainer.train(3)
    trainer, method = second_task(make_trainer, first, coef=1.0)
    for key in ("actor.1.weight", f"{RHO}actor.1.weight"):
        assert torch.equal(method.phi[key], first.phi[key])
    assert method.phi[f"{RHO}actor.4.weight"].eq(-6).all()
    batch = trainer.replay.sample_once(4, "test")
    assert method.actor_penalty(batch).tolist() == pytest.approx([0, 0], abs=1e-3)
    method.phi["actor.1.weight"] += 0.1  # (0.1)^2 e^6 / 2 for each of 256 entries
    assert method.actor_penalty(batch).tolist() == pytest.approx([516.4] * 2, rel=0.02)


def test_a_strong_divergence_holds_shared_weights_and_not_the_head(
    make_trainer: MakeTrainer,
) -> None:
    gaps = {}
    for coef in (0.0, 1e6):
        _, first = vcl(make_trainer, [0])
        first.trainer.train(2)
        trainer, method = second_task(make_trainer, first, coef=coef)
        before = {name: method.phi[name].clone() for name in ("actor.1.weight", "actor.4.weight")}
        norm = trainer.params["actor.norm.scale"].detach().clone()
        trainer.train(20)
        gaps[coef] = [float((method.phi[name] - x).abs().mean()) for name, x in before.items()]
        assert torch.equal(norm, trainer.params["actor.norm.scale"].detach())
    assert gaps[1e6][0] < 0.3 * gaps[0.0][0]
    assert gaps[1e6][1] > 0.5 * gaps[0.0][1]


def test_an_old_head_acts_with_what_it_had(make_trainer: MakeTrainer) -> None:
    _, first = vcl(make_trainer, [0], act="mean")
    first.trainer.train(2)
    trainer, method = second_task(make_trainer, first, act="mean")
    before = method.policy_weights(0)["actor.4.weight"][:, 0].clone()
    assert torch.equal(before, first.phi["actor.4.weight"])
    trainer.train(3)
    assert torch.equal(before, method.policy_weights(0)["actor.4.weight"][:, 0])
    live = method.policy_weights(1)["actor.4.weight"][:, 1]
    assert torch.equal(live, method.phi["actor.4.weight"])


def test_acting_draws_change_with_updates_only(make_trainer: MakeTrainer) -> None:
    trainer, method = vcl(make_trainer, [0])
    first = method.policy_weights(0)["actor.1.weight"]
    assert torch.equal(first, method.policy_weights(0)["actor.1.weight"])
    trainer.updates += 1
    assert not torch.equal(first, method.policy_weights(0)["actor.1.weight"])
