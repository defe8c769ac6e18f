"""Layers that serve torch and numpy, against torch's own."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.testing import assert_close

from cwbench.spec import array_layers
from cwbench.spec.config import NetworkConfig

DRAW = torch.Generator().manual_seed(0)


@pytest.mark.parametrize("xp", [torch, np])
def test_attention_is_torchs(xp: Any) -> None:
    """Queries of the state, keys from rows and their places, values the rows themselves."""
    actions, width = 4, 8
    rows, places = (torch.randn(3, 5, actions, generator=DRAW) for _ in range(2))
    query = torch.randn(5, width, generator=DRAW)
    weight = torch.randn(actions, width, generator=DRAW)
    keys = ((rows + places) @ weight).transpose(0, 1)  # [5, 3, width]
    expected = nn.functional.scaled_dot_product_attention(
        query.unsqueeze(1), keys, rows.transpose(0, 1)
    ).squeeze(1)
    arrays = [query, weight, rows, places] if xp is torch else [
        x.numpy() for x in (query, weight, rows, places)
    ]  # fmt: skip
    found = array_layers.attend(xp, arrays[0], arrays[1], list(arrays[2]), list(arrays[3]))
    assert_close(torch.as_tensor(found), expected)


def test_attention_with_equal_logits_is_the_mean_and_over_one_row_that_row() -> None:
    rows = [np.ones(4, np.float32), 3 * np.ones(4, np.float32)]
    no_keys, query = np.zeros((4, 8), np.float32), np.ones(8, np.float32)
    both = array_layers.attend(np, query, no_keys, rows, rows)
    np.testing.assert_allclose(both, 2 * np.ones(4))
    one = array_layers.attend(np, query, no_keys + 5, rows[1:], rows[1:])
    np.testing.assert_array_equal(one, rows[1])


@pytest.mark.parametrize("activation", ["leaky-relu", "relu", "tanh"])
def test_a_network_is_that_of_torchs_layers(activation: Any) -> None:
    config = NetworkConfig(hidden="6,5", activation=activation)
    linears = [nn.Linear(a, b) for a, b in [(3, 6), (6, 5), (5, 2)]]
    norm = nn.LayerNorm(6, eps=1e-3)
    act = {"leaky-relu": nn.LeakyReLU(0.2), "relu": nn.ReLU(), "tanh": nn.Tanh()}[activation]
    expected = nn.Sequential(linears[0], norm, nn.Tanh(), linears[1], act, linears[2])
    weights: dict[str, torch.Tensor] = {"net.norm.scale": norm.weight, "net.norm.shift": norm.bias}
    for layer, linear in enumerate(linears):
        weights |= {f"net.{layer}.weight": linear.weight.T, f"net.{layer}.bias": linear.bias}
    x = torch.randn(7, 3, generator=DRAW)
    arrays = {name: w.detach().numpy() for name, w in weights.items()}
    assert_close(array_layers.mlp(torch, config, weights, "net", x), expected(x))
    found = array_layers.mlp(np, config, arrays, "net", x.numpy())
    assert_close(torch.as_tensor(found), expected(x).detach())
