"""CompoNet (Malagon, Ceberio and Lozano, 2024): attention over the outputs of earlier policies."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from cwbench.learner import (
    Architecture,
    Method,
    MethodConfig,
    Network,
    NetworkConfig,
    array_layers,
    fresh_network,
    layer_options,
    network_shapes,
    plain_actor,
)


class Modules(Architecture):
    """Module 0 is the plain actor. Later ones compose the means m_0 .. m_{k-1} of earlier ones:

    output head      o = attention(state; m_0 .. m_{k-1}), weights of means that add up to one
    input head       z = attention(state; m_0 .. m_{k-1}, o) Wv
    internal policy  m_k = o + MLP([z, state]); the log-std is another MLP of the state
    """

    @property
    def dim(self) -> int:
        """Width of queries and keys."""
        return self.config.units[-1]

    def module_shapes(self, position: int) -> dict[str, tuple[int, ...]]:
        # Its position's encoding, under a name that stored weights have.
        shapes: dict[str, tuple[int, ...]] = {"place.fixed": (self.action_dim,)}
        for net in self._networks(position):
            shapes |= network_shapes(net)
        for head in ("output", "input") if position else ():
            shapes[f"{head}.query.weight"] = (self.obs_dim, self.dim)
            shapes[f"{head}.query.bias"] = (self.dim,)
            shapes[f"{head}.key.weight"] = (self.action_dim, self.dim)
        if position:
            shapes["input.value.weight"] = (self.action_dim, self.dim)
            shapes["input.value.bias"] = (self.dim,)
        return shapes

    def _networks(self, position: int) -> list[Network]:
        if not position:
            return [plain_actor(self.obs_dim, self.action_dim, self.config)]
        inputs = {"internal": self.dim + self.obs_dim, "spread": self.obs_dim}
        return [
            Network(
                name=name,
                inputs=size,
                outputs=self.action_dim,
                ensemble=(),
                head_layers=0,
                fan_out=self.action_dim,
                **layer_options(self.config),
            )
            for name, size in inputs.items()
        ]

    def init_module(self, seeds: Sequence[int], position: int) -> dict[str, Tensor]:
        module = super().init_module(seeds, position)
        for net in self._networks(position):
            module |= fresh_network(net, seeds, position)
        code = torch.tensor(position_row(position, self.action_dim))
        return module | {"place.fixed": code.expand(len(seeds), -1).clone()}

    @staticmethod
    def compute(xp: Any, config: NetworkConfig, shared: Any, modules: Any, x: Any) -> Any:
        first = array_layers.mlp(xp, config, modules[0], "actor", x)
        actions = first.shape[-1] // 2
        if len(modules) == 1:
            return first
        means, codes = [first[..., :actions]], [module["place.fixed"] for module in modules]
        for index, module in enumerate(modules[1:], 1):
            means.append(compose(xp, config, module, means, codes[: index + 1], x))
        log_std = array_layers.mlp(xp, config, modules[-1], "spread", x)
        return array_layers.concatenate(xp, [means[-1], log_std])


def compose(xp: Any, config: Any, module: Any, means: Any, codes: Any, x: Any) -> Any:
    """The mean of a module, from those of earlier modules and the state."""
    query, inner = (
        x @ module[f"{head}.query.weight"] + module[f"{head}.query.bias"]
        for head in ("output", "input")
    )
    o = array_layers.attend(xp, query, module["output.key.weight"], means, codes[:-1])
    row = array_layers.attend(xp, inner, module["input.key.weight"], [*means, o], codes)
    z = row @ module["input.value.weight"] + module["input.value.bias"]
    state = array_layers.concatenate(xp, [z, x])
    return o + array_layers.mlp(xp, config, module, "internal", state)


def position_row(position: int, width: int) -> list[float]:
    """Sinusoidal encoding of a module's position."""
    angles = [position / 10 ** (4 * (i - i % 2) / width) for i in range(width)]
    return [math.cos(a) if i % 2 else math.sin(a) for i, a in enumerate(angles)]


@dataclass(frozen=True)
class CompoNetConfig(MethodConfig):
    """No options of its own: sizes and activations are those of the networks."""


class CompoNet(Method[CompoNetConfig]):
    """A module of the actor per task, which attends to the outputs of the frozen earlier ones."""

    config_class = CompoNetConfig
    architecture = Modules

    def on_task_start(self, position: int) -> None:
        """Reset the critics."""
        if position:
            self.trainer.reset(("critic",))
