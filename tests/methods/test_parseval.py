"""Parseval regularisation: the closed gradient."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from cwbench.learner import Trainer
from cwbench.methods.parseval import Parseval, ParsevalConfig, penalty_gradient

MakeTrainer = Callable[..., Trainer]


def penalty(weight: Tensor, scale: float) -> Tensor:
    """|| W^T W - scale I ||_F^2, all kernels together."""
    gram = weight.mT @ weight - scale * torch.eye(weight.shape[-1], dtype=weight.dtype)
    return (gram**2).sum()


def test_gradient_by_finite_differences() -> None:
    weight = torch.randn(2, 2, 3, 4, generator=torch.Generator().manual_seed(0)).double()
    got = penalty_gradient(weight, 1.5)
    step = 1e-6
    for index in ((0, 0, 1, 2), (1, 1, 2, 0), (1, 0, 0, 3)):
        up, down = weight.clone(), weight.clone()
        up[index] += step
        down[index] -= step
        slope = (penalty(up, 1.5) - penalty(down, 1.5)) / (2 * step)
        assert got[index].item() == pytest.approx(slope.item(), rel=1e-6)


def test_orthogonal_units_of_the_right_length_are_left_alone() -> None:
    noise = torch.randn(2, 6, 6, generator=torch.Generator().manual_seed(0)).double()
    weight = 2**0.5 * torch.linalg.qr(noise).Q
    assert penalty_gradient(weight, 2.0).abs().max() < 1e-12
    assert penalty_gradient(torch.zeros(1, 3, 3), 1.0).eq(0).all()


def test_multiples_of_the_identity() -> None:
    eye = torch.eye(4).unsqueeze(0)
    torch.testing.assert_close(penalty_gradient(3 * eye, 1.0), 4 * 3 * (9 - 1) * eye)


def test_hidden_shared_kernels_get_the_scaled_gradient(make_trainer: MakeTrainer) -> None:
    trainer = make_trainer([0, 1])
    method = Parseval(ParsevalConfig(coef=0.5, networks="critic"), trainer)
    grads = {name: torch.zeros_like(p) for name, p in trainer.params.items()}
    method.adjust_gradients(grads)
    touched = {name for name, grad in grads.items() if grad.ne(0).any()}
    assert touched == {f"critic.{layer}.weight" for layer in (1, 2, 3)}
    weight = trainer.params["critic.2.weight"].detach()
    factor = 0.5 * (64 / 16) ** 2
    torch.testing.assert_close(grads["critic.2.weight"], factor * penalty_gradient(weight, 1.0))
    method = Parseval(ParsevalConfig(input_layer=True), trainer)
    assert {"actor.0.weight", "critic.0.weight"} <= set(method.kernels())
