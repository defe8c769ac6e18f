"""The policy in numpy, for worker processes, which never load torch."""

from typing import Any

import numpy as np

from cwbench.spec.actor_layout import LEAK, LOG_STD_MAX, LOG_STD_MIN, NORM_EPS, ActorLayout, Floats

SLOPE, EPS = np.float32(LEAK), np.float32(NORM_EPS)


class Actor:
    """One run's policy, reading weights from a vector that others may refresh in place."""

    def __init__(self, layout: ActorLayout, flat: Floats) -> None:
        self.layout = layout
        self.parts = layout.views(flat)
        self._heads: dict[int, list[tuple[Floats, Floats]]] = {}
        self._norms: dict[int, tuple[Floats, Floats]] = {}
        width = layout.shapes["actor.0.bias"][-1]
        self._mean = np.full(width, 1 / width, np.float32)  # a product with it is a mean

    def _head(self, head: int) -> list[tuple[Floats, Floats]]:
        """Weight and bias of every layer for one head, and its LayerNorm, as views."""
        shared = self.layout.layers - self.layout.head_layers
        pick = [
            (weight, bias) if layer < shared else (weight[head], bias[head])
            for layer in range(self.layout.layers + 1)
            for weight, bias in [
                (self.parts[f"actor.{layer}.weight"], self.parts[f"actor.{layer}.bias"])
            ]
        ]
        scale, shift = self.parts["actor.norm.scale"], self.parts["actor.norm.shift"]
        self._norms[head] = (scale, shift) if shared else (scale[head], shift[head])
        self._heads[head] = pick
        return pick

    def distribution(self, obs: Floats, head: int) -> tuple[Floats, Floats]:
        """Mean and std before the tanh: [..., O] -> [..., A], [..., A]."""
        layers = self._heads.get(head) or self._head(head)
        scale, shift = self._norms[head]
        weight, bias = layers[0]
        # One observation is a few dozen calls into numpy, so their price counts: `dot` is cheaper
        # than `matmul`, and a product with 1/n than a sum or a mean.
        x = obs.dot(weight)
        x += bias
        x -= x.dot(self._mean)[..., None]
        x *= scale / np.sqrt((x * x).dot(self._mean) + EPS)[..., None]
        x += shift
        np.tanh(x, out=x)
        for weight, bias in layers[1:-1]:
            x = x.dot(weight)
            x += bias
            np.maximum(x, x * SLOPE, out=x)
        weight, bias = layers[-1]
        out: Any = x.dot(weight)
        out += bias
        half = out.shape[-1] // 2
        log_std = np.minimum(np.maximum(out[..., half:], LOG_STD_MIN), LOG_STD_MAX)
        return out[..., :half], np.exp(log_std)

    def act(self, obs: Floats, head: int, noise: Floats) -> Floats:
        mean, std = self.distribution(obs, head)
        std *= noise
        std += mean
        return np.tanh(std, out=std)
