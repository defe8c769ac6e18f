"""Networks for R runs at once. Weights are plain tensors in a dict, each with a leading run axis.

A network is a trunk that all tasks share and one head per task. How many of the hidden layers
belong to the heads is a number: 0 is the usual multi-head network, all of them is a network per
task that shares nothing.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from cwbench import rng
from cwbench.actor import LEAK, LOG_STD_MAX, LOG_STD_MIN, NORM_EPS

LOG_2PI = math.log(2 * math.pi)

Params = Mapping[str, Tensor]


@dataclass(frozen=True)
class Tasks:
    """Which task each row of a batch belongs to: [R, B].

    `blocks` says it a second time, as (task, rows) in order, when it is known without looking at
    data: heads are then applied to slices instead of to every row.
    """

    index: Tensor
    blocks: tuple[tuple[int, int], ...] = ()

    def of(self, per_task: Tensor) -> Tensor:
        """A number per run and task, for each row: [R, T] -> [R, B]."""
        return per_task.gather(1, self.index)

    @staticmethod
    def single(task: int, runs: int, rows: int, device: torch.device) -> "Tasks":
        index = torch.full((1, 1), task, device=device).expand(runs, rows)
        return Tasks(index, ((task, rows),))

    @staticmethod
    def join(parts: Sequence["Tasks"]) -> "Tasks":
        index = torch.cat([part.index for part in parts], 1)
        blocks = [block for part in parts for block in part.blocks]
        return Tasks(index, tuple(blocks) if all(part.blocks for part in parts) else ())


@dataclass(frozen=True)
class Network:
    """Linear, LayerNorm, tanh, then (layers - 1) times Linear and leaky ReLU, then a linear output.

    `lead` is the shape before a weight's own axes, after the run axis: () for the actor, (2,) for
    twin critics. Weights of a head have a task axis right before [in, out].
    """

    name: str
    inputs: int
    outputs: int
    lead: tuple[int, ...]
    width: int
    layers: int
    head_layers: int
    fan_out: int  # of the output layer, for its initial scale

    def _sizes(self) -> list[tuple[int, int]]:
        hidden = [self.inputs] + [self.width] * self.layers
        return [*zip(hidden, hidden[1:], strict=False), (self.width, self.outputs)]

    def _in_head(self, layer: int) -> bool:
        return layer >= self.layers - self.head_layers

    def shapes(self, tasks: int) -> dict[str, tuple[int, ...]]:
        """Name -> shape without the run axis."""
        shapes: dict[str, tuple[int, ...]] = {}
        for layer, (inputs, outputs) in enumerate(self._sizes()):
            lead = (*self.lead, tasks) if self._in_head(layer) else self.lead
            shapes[f"{self.name}.{layer}.weight"] = (*lead, inputs, outputs)
            shapes[f"{self.name}.{layer}.bias"] = (*lead, outputs)
            if layer == 0:
                shapes[f"{self.name}.norm.scale"] = (*lead, outputs)
                shapes[f"{self.name}.norm.shift"] = (*lead, outputs)
        return shapes

    def per_task(self, name: str) -> bool:
        """Whether a parameter belongs to the heads; its task axis is then `self.task_axis`."""
        layer = 0 if ".norm." in name else int(name.split(".")[1])
        return self._in_head(layer)

    @property
    def task_axis(self) -> int:
        return 1 + len(self.lead)

    def init_trunk(self, seeds: Sequence[int]) -> dict[str, Tensor]:
        shapes = {n: s for n, s in self.shapes(1).items() if not self.per_task(n)}
        return {name: self._init(name, shape, seeds, name) for name, shape in shapes.items()}

    def init_head(self, seeds: Sequence[int], position: int) -> dict[str, Tensor]:
        """A new head depends on (seed, position), not on how many heads there will be."""
        shapes = {n: s for n, s in self.shapes(1).items() if self.per_task(n)}
        return {
            name: self._init(name, shape, seeds, f"{name}@{position}")
            for name, shape in shapes.items()
        }

    def _init(self, name: str, shape: tuple[int, ...], seeds: Sequence[int], stream: str) -> Tensor:
        """Glorot-uniform weights, zero biases, LayerNorm scale one."""
        if name.endswith(".scale"):
            return torch.ones(len(seeds), *shape)
        if not name.endswith(".weight"):
            return torch.zeros(len(seeds), *shape)
        fan_out = self.fan_out if name == f"{self.name}.{self.layers}.weight" else shape[-1]
        limit = math.sqrt(6 / (shape[-2] + fan_out))
        return (2 * rng.uniform(seeds, stream, shape) - 1) * limit

    def __call__(self, params: Params, x: Tensor, tasks: Tasks) -> Tensor:
        """[R, (2,) B, inputs] -> [R, (2,) B, outputs]; without the 2, x serves both twins."""
        if self.lead and x.dim() == 3:
            x = x.unsqueeze(1)
        for layer in range(self.layers - self.head_layers):
            x = self._hidden(params, layer, x)
        if not tasks.blocks:
            return self._every_head(params, x, tasks)
        rows = torch.split(x, [rows for _, rows in tasks.blocks], dim=-2)
        parts = [
            self._head(self._select(params, task), part)
            for (task, _), part in zip(tasks.blocks, rows, strict=True)
        ]
        return parts[0] if len(parts) == 1 else torch.cat(parts, -2)

    def _hidden(self, params: Params, layer: int, x: Tensor) -> Tensor:
        x = self._linear(params, layer, x)
        if layer:
            return torch.nn.functional.leaky_relu(x, LEAK)
        scale, shift = params[f"{self.name}.norm.scale"], params[f"{self.name}.norm.shift"]
        x = torch.nn.functional.layer_norm(x, x.shape[-1:], eps=NORM_EPS)
        return torch.tanh(x * scale.unsqueeze(-2) + shift.unsqueeze(-2))

    def _linear(self, params: Params, layer: int, x: Tensor) -> Tensor:
        weight = params[f"{self.name}.{layer}.weight"]
        return x @ weight + params[f"{self.name}.{layer}.bias"].unsqueeze(-2)

    def _select(self, params: Params, task: int) -> dict[str, Tensor]:
        """The parameters of one task's head, without the task axis."""
        return {
            name: params[name].select(self.task_axis, task)
            for name in self.shapes(1)
            if self.per_task(name)
        }

    def _head(self, params: Params, x: Tensor) -> Tensor:
        for layer in range(self.layers - self.head_layers, self.layers):
            x = self._hidden(params, layer, x)
        return self._linear(params, self.layers, x)

    def _every_head(self, params: Params, x: Tensor, tasks: Tasks) -> Tensor:
        """All heads on all rows, then each row's own: for batches mixed by chance."""
        out = self._head(params, x.unsqueeze(self.task_axis))  # [R, (2,) T, B, K]
        index = tasks.index.view(tasks.index.shape[0], *(1 for _ in self.lead), 1, -1, 1)
        index = index.expand(-1, *self.lead, 1, -1, self.outputs)
        return out.gather(self.task_axis, index).squeeze(self.task_axis)


def squash(mean: Tensor, log_std: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
    """Tanh-squashed sample and its log density: [R, B, A] -> [R, B, A], [R, B]."""
    std = log_std.exp()
    u = mean + std * noise
    gaussian = -0.5 * (((u - mean) / (std + 1e-8)) ** 2 + 2 * log_std + LOG_2PI)
    squeeze = 2 * (math.log(2) - u - torch.nn.functional.softplus(-2 * u))
    return torch.tanh(u), (gaussian - squeeze).sum(-1)


@dataclass(frozen=True)
class Policy:
    """The actor: mean and log-std of a Gaussian before the tanh."""

    network: Network

    def __call__(self, params: Params, obs: Tensor, tasks: Tasks) -> tuple[Tensor, Tensor]:
        mean, log_std = self.network(params, obs, tasks).chunk(2, -1)
        return mean, log_std.clamp(LOG_STD_MIN, LOG_STD_MAX)


def make_policy(obs_dim: int, action_dim: int, width: int, layers: int, head_layers: int) -> Policy:
    """One output layer for mean and log-std; each is scaled as a layer of its own."""
    return Policy(
        Network("actor", obs_dim, 2 * action_dim, (), width, layers, head_layers, action_dim)
    )


def make_critic(
    obs_dim: int, action_dim: int, width: int, layers: int, head_layers: int
) -> Network:
    return Network("critic", obs_dim + action_dim, 1, (2,), width, layers, head_layers, 1)
