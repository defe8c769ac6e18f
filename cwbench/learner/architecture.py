"""Actors of another architecture: a class with the shapes of its weights and a forward pass.

A position's weights are a module, which is frozen when its task ends. The policy of an old task
uses the modules up to its own, and never changes where positions share no weights: shared ones are
trained in every task. The forward pass is written once for torch and numpy.
"""

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from cwbench.learner import rng
from cwbench.learner.heads import TaskIndex
from cwbench.learner.networks import Network, Params
from cwbench.spec.config import Activation, NetworkConfig

Shapes = dict[str, tuple[int, ...]]
Pullback = Callable[[Tensor], dict[str, Tensor]]


class Architecture:
    """Base of your own actors. Override `module_shapes` and `compute`; the rest may stay.

    Names end in `.weight` (initially Glorot-uniform), `.scale` (one), `.fixed` (never trained) or
    anything else (zero). With `--init torch`, a `.weight` and the `.bias` of the same name have
    torch's initial values.
    """

    name = "actor"
    task_axis = 1  # of length one: each module has its own names

    def __init__(self, obs_dim: int, action_dim: int, config: NetworkConfig) -> None:
        self.obs_dim, self.action_dim, self.config = obs_dim, action_dim, config

    def shared_shapes(self) -> Shapes:
        """Weights that all positions share."""
        return {}

    def module_shapes(self, position: int) -> Shapes:
        """Weights that a position adds."""
        raise NotImplementedError

    @staticmethod
    def compute(xp: Any, config: NetworkConfig, shared: Any, modules: Any, x: Any) -> Any:
        """Mean and log-std, before its limits, of the last module's position: [..., 2A].

        `xp` is torch or numpy; `cwbench.spec.array_layers` has layers for both and says how arrays
        look. Workers get this function and what it uses of its own file, but no torch.
        """
        raise NotImplementedError

    def init_module(self, seeds: Sequence[int], position: int) -> dict[str, Tensor]:
        """Initial weights of a module: [R, ...]."""
        return self._initial(self.module_shapes(position), seeds, f"@{position}")

    def _initial(self, shapes: Shapes, seeds: Sequence[int], draw: str) -> dict[str, Tensor]:
        return {name: self.initial(name, shapes, seeds, draw) for name in shapes}

    def initial(self, name: str, shapes: Shapes, seeds: Sequence[int], draw: str) -> Tensor:
        """One initial weight: [R, ...]; `draw` names its random numbers."""
        limit = self.limit(name, shapes)
        if not limit:
            return torch.full((len(seeds), *shapes[name]), float(name.endswith(".scale")))
        return (2 * rng.uniform(seeds, f"actor.{name}{draw}", shapes[name]) - 1) * limit

    def limit(self, name: str, shapes: Mapping[str, tuple[int, ...]]) -> float:
        """The largest initial value of a weight or bias; 0 for what is not drawn."""
        layer, _, kind = name.rpartition(".")
        weight, torchs = shapes.get(f"{layer}.weight"), self.config.init == "torch"
        if weight is None or kind not in (("weight", "bias") if torchs else ("weight",)):
            return 0.0
        fan_in, fan_out = weight[-2:]
        return 1 / math.sqrt(fan_in) if torchs else math.sqrt(6 / (fan_in + fan_out))

    # What follows is how trainer and losses see any actor (`networks.Network` is the usual one).

    layers = head_layers = 0

    @property
    def activation(self) -> Activation:
        return self.config.activation

    def shapes(self, num_tasks: int) -> Shapes:
        """Name -> shape without the run axis."""
        shapes = {f"actor.shared.{name}": shape for name, shape in self.shared_shapes().items()}
        for position in range(num_tasks):
            for name, shape in self.module_shapes(position).items():
                shapes[f"actor.{position}.{name}"] = (1, *shape)
        return shapes

    def per_task(self, name: str) -> bool:
        return not name.startswith("actor.shared.")

    def trains(self, name: str, num_tasks: int) -> bool:
        """Whether the last of these tasks trains a weight."""
        last = name.split(".")[1] in ("shared", str(num_tasks - 1))
        return last and not name.endswith(".fixed")

    def init_trunk(self, seeds: Sequence[int], draw: str = "") -> dict[str, Tensor]:
        shared = self._initial(self.shared_shapes(), seeds, draw)
        return {f"actor.shared.{name}": x for name, x in shared.items()}

    def init_head(self, seeds: Sequence[int], position: int) -> dict[str, Tensor]:
        module = self.init_module(seeds, position)
        return {f"actor.{position}.{name}": x.unsqueeze(1) for name, x in module.items()}

    def __call__(self, params: Params, x: Tensor, tasks: TaskIndex) -> Tensor:
        """[R, B, O] -> [R, B, 2A]."""
        parts = torch.split(x, [rows for _, rows in tasks.blocks], 1)
        made = [
            self.compute(torch, self.config, *self._arrays(params, position), part)
            for (position, _), part in zip(tasks.blocks, parts, strict=True)
        ]
        return made[0] if len(made) == 1 else torch.cat(made, 1)

    def _arrays(self, params: Params, position: int) -> tuple[Params, list[Params]]:
        """Shared weights and the modules that act for a position; biases are [R, 1, out]."""
        shared = {
            name: x if x.dim() > 2 else x.unsqueeze(1)
            for name, x in named(params, "actor.shared.").items()
        }
        modules: list[Params] = [
            {name: x if x.dim() < 4 else x.squeeze(1) for name, x in own.items()}
            for own in (named(params, f"actor.{index}.") for index in range(position + 1))
        ]
        return shared, modules

    def forward(self, params: Params, x: Tensor, tasks: TaskIndex) -> tuple[Tensor, Pullback]:
        """[R, P, B, O] -> [R, P, B, 2A], and the first batch's pullback to weights."""
        own = {name: p for name, p in params.items() if name.startswith("actor.")}
        trained = {name: p.detach() for name, p in own.items() if p.requires_grad}
        vjp: Any = torch.func.vjp
        out, pullback = vjp(lambda own: self({**params, **own}, x[:, 0], tasks), trained)
        others = [self(params, x[:, index], tasks) for index in range(1, x.shape[1])]
        return torch.stack([out, *others], 1), lambda grad: pullback(grad)[0]

    def backward(self, params: Params, cache: Pullback, grad: Tensor) -> dict[str, Tensor]:
        return cache(grad)

    @cached_property
    def acting(self) -> bytes:
        """`compute` for workers, by value: its own file may import torch."""
        import cloudpickle

        module = sys.modules[self.compute.__module__]
        cloudpickle.register_pickle_by_value(module)
        try:
            content: bytes = cloudpickle.dumps(self.compute)
        finally:
            cloudpickle.unregister_pickle_by_value(module)
        return content


def named(params: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """Parameters under a prefix, without it."""
    return {k.removeprefix(prefix): x for k, x in params.items() if k.startswith(prefix)}


# A plain network as part of a module.


def network_shapes(net: Network) -> Shapes:
    """Shapes of a network with one head, without a task axis."""
    return {name: s[1:] if net.per_task(name) else s for name, s in net.shapes(1).items()}


def fresh_network(net: Network, seeds: Sequence[int], position: int) -> dict[str, Tensor]:
    """Initial weights of a network for a position: those that `independent` starts it with."""
    trunk = net.init_trunk(seeds, f"@{position}" if position else "")
    head = net.init_head(seeds, position)
    return trunk | {name: x.squeeze(1) for name, x in head.items()}
