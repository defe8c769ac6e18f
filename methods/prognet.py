"""Progressive networks (Rusu et al., 2016): a column per task, fed by the frozen earlier ones."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from torch import Tensor

from cwbench.learner import (
    Architecture,
    Method,
    MethodConfig,
    NetworkConfig,
    array_layers,
    fresh_network,
    network_shapes,
    option,
    plain_actor,
)

ALPHA = 0.1  # largest initial scale of an earlier column's features, with adaptors


class Columns(Architecture):
    """h_l^k = f(h_{l-1}^k W_l + b_l + [h_{l-1}^0 .. h_{l-1}^{k-1}] U_l); the output reads h^k."""

    def module_shapes(self, position: int) -> dict[str, tuple[int, ...]]:
        shapes = network_shapes(plain_actor(self.obs_dim, self.action_dim, self.config))
        units = self.config.units
        for layer in range(1, len(units)) if position else ():
            shapes[f"lateral.{layer}.weight"] = (position * units[layer - 1], units[layer])
        return shapes

    def init_module(self, seeds: Sequence[int], position: int) -> dict[str, Tensor]:
        """A column starts as `independent` starts a task."""
        plain = plain_actor(self.obs_dim, self.action_dim, self.config)
        return super().init_module(seeds, position) | fresh_network(plain, seeds, position)

    def limit(self, name: str, shapes: Mapping[str, tuple[int, ...]]) -> float:
        """By torch's rule a lateral's fan-in is one column's: each would be a separate layer."""
        if name.startswith("lateral.") and self.config.init == "torch":
            return 1 / math.sqrt(self.config.units[int(name.split(".")[1]) - 1])
        return super().limit(name, shapes)

    @staticmethod
    def compute(xp: Any, config: NetworkConfig, shared: Any, modules: Any, x: Any) -> Any:
        hidden = [x] * len(modules)
        for layer in range(config.layers):
            # Of the last hidden layer only the current column's is read.
            first = len(modules) - 1 if layer == config.layers - 1 else 0
            hidden = [
                column_layer(xp, config, modules[index], layer, hidden[: index + 1])
                for index in range(first, len(modules))
            ]
        return array_layers.output_layer(config, modules[-1], "actor", hidden[-1])


class AdaptorColumns(Columns):
    """The paper's laterals: relu([a_0 h_{l-1}^0 .. a_{k-1} h_{l-1}^{k-1}] V_l) U_l, a_j scalars."""

    def module_shapes(self, position: int) -> dict[str, tuple[int, ...]]:
        shapes, units = super().module_shapes(position), self.config.units
        for layer in range(1, len(units)) if position else ():
            below = units[layer - 1]
            shapes[f"lateral.{layer}.alpha"] = (position,)
            shapes[f"lateral.{layer}.down.weight"] = (position * below, below)  # V
            shapes[f"lateral.{layer}.weight"] = (below, units[layer])  # U
        return shapes

    def limit(self, name: str, shapes: Mapping[str, tuple[int, ...]]) -> float:
        """V and U are layers like others; by torch's rule too."""
        return ALPHA if name.endswith(".alpha") else Architecture.limit(self, name, shapes)


def column_layer(xp: Any, config: Any, module: Any, layer: int, below: Any) -> Any:
    """A layer of a column, given the layer below of the earlier columns and, last, its own."""
    lateral = 0
    if layer and len(below) > 1:
        own, earlier = f"lateral.{layer}", below[:-1]
        alpha = module.get(f"{own}.alpha")
        if alpha is None:
            read = array_layers.concatenate(xp, earlier)
        else:
            scaled = [alpha[..., j : j + 1] * column for j, column in enumerate(earlier)]
            read = array_layers.concatenate(xp, scaled) @ module[f"{own}.down.weight"]
            read = array_layers.activate(xp, read, "relu")
        lateral = read @ module[f"{own}.weight"]
    return array_layers.hidden_layer(xp, config, module, "actor", layer, below[-1], lateral)


@dataclass(frozen=True)
class ProgNetConfig(MethodConfig):
    laterals: Literal["glorot", "zero", "adaptor"] = option(
        "glorot",
        "Lateral connections: matrices that start with Glorot's weights (torch's with --init "
        "torch) or at zero, or the paper's adaptors.",
    )


class ProgNet(Method[ProgNetConfig]):
    """A column of the actor per task, with lateral connections from the frozen earlier columns."""

    config_class = ProgNetConfig
    architecture = Columns

    @classmethod
    def architecture_of(cls, config: ProgNetConfig) -> type[Architecture]:
        return AdaptorColumns if config.laterals == "adaptor" else Columns

    def on_task_start(self, position: int) -> None:
        """Reset the critics."""
        if not position:
            return
        self.trainer.reset(("critic",))
        if self.config.laterals == "zero":
            names = [name for name in self.trainer.trained if ".lateral." in name]
            self.trainer.set_parameters({name: 0 * self.trainer.params[name] for name in names})
