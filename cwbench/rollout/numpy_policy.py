"""The policy in numpy, for worker processes, which never load torch."""

from collections.abc import Callable
from typing import Any

import numpy as np

from cwbench.spec.actor_layout import LEAK, NORM_EPS, ActorLayout, Floats
from cwbench.spec.config import Activation
from cwbench.spec.env_source import from_value

SLOPE, EPS = np.float32(LEAK), np.float32(NORM_EPS)

Arrays = dict[str, Floats]

# Each overwrites its argument.
ACTIVATIONS: dict[Activation, Callable[[Floats], Any]] = {
    "leaky-relu": lambda x: np.maximum(x, x * SLOPE, out=x),
    "relu": lambda x: np.maximum(x, 0, out=x),
    "tanh": lambda x: np.tanh(x, out=x),
}


class Actor:
    """One run's policy, reading weights from a vector that others may refresh in place."""

    def __init__(self, layout: ActorLayout, flat: Floats) -> None:
        self.layout = layout
        self.parts = layout.views(flat)
        self._heads: dict[int, list[tuple[Floats, Floats]]] = {}
        self._norms: dict[int, tuple[Floats, Floats]] = {}  # empty without LayerNorm
        self._activate = ACTIVATIONS[layout.activation]
        self._compute = from_value(layout.compute) if layout.compute else None
        self._modules: dict[int, tuple[Arrays, list[Arrays]]] = {}
        width = 1 if self._compute else layout.shapes["actor.0.bias"][-1]
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
        if "actor.norm.scale" in self.parts:
            scale, shift = self.parts["actor.norm.scale"], self.parts["actor.norm.shift"]
            self._norms[head] = (scale, shift) if shared else (scale[head], shift[head])
        self._heads[head] = pick
        return pick

    def distribution(self, obs: Floats, head: int) -> tuple[Floats, Floats]:
        """Mean and std before the tanh: [..., O] -> [..., A], [..., A]."""
        out = self._composed(obs, head) if self._compute else self._mlp(obs, head)
        half = out.shape[-1] // 2
        return out[..., :half], np.exp(self._log_std(out[..., half:]))

    def _composed(self, obs: Floats, head: int) -> Any:
        """The output of an actor of another architecture (`cwbench.learner.architecture`)."""
        assert self._compute is not None
        if head not in self._modules:
            shared = self._named("actor.shared.")
            modules = [self._named(f"actor.{position}.") for position in range(head + 1)]
            self._modules[head] = shared, [{k: x[0] for k, x in m.items()} for m in modules]
        return self._compute(np, self.layout.network, *self._modules[head], obs)

    def _named(self, prefix: str) -> Arrays:
        """Weights under a prefix, without it."""
        return {k.removeprefix(prefix): x for k, x in self.parts.items() if k.startswith(prefix)}

    def _mlp(self, obs: Floats, head: int) -> Any:
        layers = self._heads.get(head) or self._head(head)
        # One observation is a few dozen calls into numpy, so their cost counts: `dot` is cheaper
        # than `matmul`, and a product with 1/n than a sum or a mean.
        x = obs
        if self._norms:
            x = self._first_layer(obs, *layers[0], *self._norms[head])
            layers = layers[1:]
        for weight, bias in layers[:-1]:
            x = x.dot(weight)
            x += bias
            self._activate(x)
        weight, bias = layers[-1]
        out: Any = x.dot(weight)
        out += bias
        return out

    def _first_layer(
        self, obs: Floats, weight: Floats, bias: Floats, scale: Floats, shift: Floats
    ) -> Any:
        x: Any = obs.dot(weight)
        x += bias
        x -= x.dot(self._mean)[..., None]
        x *= scale / np.sqrt((x * x).dot(self._mean) + EPS)[..., None]
        x += shift
        return np.tanh(x, out=x)

    def _log_std(self, x: Floats) -> Any:
        low, high = self.layout.log_std_range
        if self.layout.log_std == "clip":
            return np.minimum(np.maximum(x, low), high)
        return low + (high - low) / 2 * (np.tanh(x) + 1)

    def act(self, obs: Floats, head: int, noise: Floats) -> Floats:
        mean, std = self.distribution(obs, head)
        std *= noise
        std += mean
        return np.tanh(std, out=std)
