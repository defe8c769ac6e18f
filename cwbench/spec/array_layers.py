"""Layers written once for torch and for numpy: `xp` is the module whose arrays come in.

Workers import this file, so it must not import torch. In torch every array has a leading run axis:
x is [R, B, in], a weight [R, in, out], a bias [R, 1, out]. In numpy x is [..., in], a weight
[in, out], a bias [out].
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from cwbench.spec.actor_layout import LEAK, NORM_EPS
from cwbench.spec.config import Activation, NetworkConfig

Weights = Mapping[str, Any]  # arrays by name


def activate(xp: Any, x: Any, activation: Activation) -> Any:
    if activation == "tanh":
        return xp.tanh(x)
    return xp.where(x > 0, x, (LEAK if activation == "leaky-relu" else 0) * x)


def layer_norm(xp: Any, x: Any, scale: Any, shift: Any) -> Any:
    x = x - x.mean(-1, keepdims=True)
    return x / xp.sqrt((x * x).mean(-1, keepdims=True) + NORM_EPS) * scale + shift


def hidden_layer(
    xp: Any, config: NetworkConfig, weights: Weights, name: str, layer: int, x: Any, more: Any = 0
) -> Any:
    """One hidden layer of the network `name`; `more` is added before the activation."""
    x = x @ weights[f"{name}.{layer}.weight"] + weights[f"{name}.{layer}.bias"] + more
    if layer == 0 and config.layer_norm == "on":
        scale, shift = weights[f"{name}.norm.scale"], weights[f"{name}.norm.shift"]
        return xp.tanh(layer_norm(xp, x, scale, shift))
    return activate(xp, x, config.activation)


def output_layer(config: NetworkConfig, weights: Weights, name: str, x: Any) -> Any:
    last = f"{name}.{config.layers}"
    return x @ weights[f"{last}.weight"] + weights[f"{last}.bias"]


def mlp(xp: Any, config: NetworkConfig, weights: Weights, name: str, x: Any) -> Any:
    """A whole network as the plain actor is one: hidden layers, then a linear output."""
    for layer in range(config.layers):
        x = hidden_layer(xp, config, weights, name, layer, x)
    return output_layer(config, weights, name, x)


def concatenate(xp: Any, parts: Sequence[Any]) -> Any:
    """Along the last axis."""
    return xp.concatenate(list(parts), -1)


def attend(xp: Any, query: Any, keys: Any, rows: Sequence[Any], encodings: Sequence[Any]) -> Any:
    """The rows [..., A], weighted by how well a query fits their keys, (row + encoding) @ keys.

    Attention's values are the rows themselves. A bias of the keys would shift all logits alike, so
    there is none. The query goes through the keys' matrix once, instead of each row.
    """
    query = query @ keys.swapaxes(-1, -2) / math.sqrt(keys.shape[-1])
    logits = [(query * (row + code)).sum(-1) for row, code in zip(rows, encodings, strict=True)]
    logits = xp.stack(logits, -1)
    share = xp.exp(logits - xp.amax(logits, -1, keepdims=True))
    share = share / share.sum(-1, keepdims=True)
    return sum(share[..., index, None] * row for index, row in enumerate(rows))
