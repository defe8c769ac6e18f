"""Products, activations and their gradients against torch.nn and autograd."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from cwbench.learner.layers import activate, activation_gradient, backward, linear

TORCHS = {"leaky-relu": nn.LeakyReLU(0.2), "relu": nn.ReLU(), "tanh": nn.Tanh()}


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("activation", TORCHS)
def test_activations_and_gradients_are_torchs(activation: Any) -> None:
    x = normal(2, 5, 7).requires_grad_()
    grad = normal(2, 5, 7, seed=1)
    expected = TORCHS[activation](x)
    (expected_grad,) = torch.autograd.grad(expected, x, grad)
    with torch.no_grad():
        value = activate(x.detach().clone(), activation)
        assert_close(value, expected)
        assert_close(activation_gradient(grad, value, activation), expected_grad)


@pytest.mark.parametrize("outputs", [1, 3])
def test_products_and_gradients_are_those_of_each_network(outputs: int) -> None:
    bias, x, weight = normal(2, 1, outputs), normal(2, 5, 4, seed=1), normal(2, 4, outputs, seed=2)
    grad = normal(2, 5, outputs, seed=3)
    made, by_x = linear(bias, x, weight), backward(grad, weight)
    for network in range(2):
        assert_close(made[network], x[network] @ weight[network] + bias[network])
        assert_close(by_x[network], grad[network] @ weight[network].T)
