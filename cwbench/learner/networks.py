"""Networks for R runs at once. Weights are plain tensors in a dict, each with a leading run axis.

A network is a trunk that all tasks share and one head per task. How many of the hidden layers
belong to the heads is a number: 0 is the usual multi-head network, all of them is a network per
task that shares nothing.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import torch
from torch import Tensor

from cwbench.learner import rng
from cwbench.learner.heads import Heads, TaskIndex, apart
from cwbench.learner.layers import activate, activation_gradient, backward, linear, overwriting_tanh
from cwbench.spec.actor_layout import NORM_EPS
from cwbench.spec.config import Activation, InitialWeights, NetworkConfig

Params = Mapping[str, Tensor]


@dataclass(frozen=True, kw_only=True)
class Network:
    """Hidden layers, each linear with an activation, then a linear output.

    With `norm` the first hidden layer is linear, LayerNorm and tanh instead.

    `ensemble` is the shape between the run axis and a weight's own axes: () for the actor, (2,) for
    twin critics. Weights of a head have a task axis right before [in, out].
    """

    name: str
    inputs: int
    outputs: int
    ensemble: tuple[int, ...]
    units: tuple[int, ...]  # of each hidden layer
    head_layers: int
    fan_out: int  # of the output layer, for its initial scale
    norm: bool = True
    activation: Activation = "leaky-relu"
    init: InitialWeights = "glorot"

    @property
    def layers(self) -> int:
        """Hidden layers."""
        return len(self.units)

    def _sizes(self) -> list[tuple[int, int]]:
        return list(pairwise([self.inputs, *self.units, self.outputs]))

    def _in_head(self, layer: int) -> bool:
        return layer >= self.layers - self.head_layers

    def shapes(self, num_tasks: int) -> dict[str, tuple[int, ...]]:
        """Name -> shape without the run axis."""
        shapes: dict[str, tuple[int, ...]] = {}
        for layer, (inputs, outputs) in enumerate(self._sizes()):
            leading = (*self.ensemble, num_tasks) if self._in_head(layer) else self.ensemble
            shapes[f"{self.name}.{layer}.weight"] = (*leading, inputs, outputs)
            shapes[f"{self.name}.{layer}.bias"] = (*leading, outputs)
            if layer == 0 and self.norm:
                shapes[f"{self.name}.norm.scale"] = (*leading, outputs)
                shapes[f"{self.name}.norm.shift"] = (*leading, outputs)
        return shapes

    def trains(self, name: str, num_tasks: int) -> bool:
        """Whether the last of these tasks trains a parameter: all of them here."""
        return True

    acting, config = b"", None  # workers know this architecture

    def per_task(self, name: str) -> bool:
        """Whether a parameter belongs to the heads; its task axis is then `self.task_axis`."""
        layer = 0 if ".norm." in name else int(name.split(".")[1])
        return self._in_head(layer)

    @property
    def task_axis(self) -> int:
        return 1 + len(self.ensemble)

    def init_trunk(self, seeds: Sequence[int], draw: str = "") -> dict[str, Tensor]:
        """Initial shared weights; `draw` names further ones from the same distribution."""
        shapes = {n: s for n, s in self.shapes(1).items() if not self.per_task(n)}
        return {
            name: self._init(name, shape, seeds, f"{name}{draw}") for name, shape in shapes.items()
        }

    def init_units(self, layer: int, draws: Tensor) -> Tensor:
        """Initial incoming weights of units of a shared layer, from uniform numbers in [0, 1)."""
        return (2 * draws - 1) * self.limit(*self._sizes()[layer])

    def init_head(self, seeds: Sequence[int], position: int) -> dict[str, Tensor]:
        """A new head depends on (seed, position), not on how many heads there will be."""
        shapes = {n: s for n, s in self.shapes(1).items() if self.per_task(n)}
        return {
            name: self._init(name, shape, seeds, f"{name}@{position}")
            for name, shape in shapes.items()
        }

    def _init(self, name: str, shape: tuple[int, ...], seeds: Sequence[int], stream: str) -> Tensor:
        """Uniform weights; biases zero, or as weights with torch's rule; LayerNorm scale one."""
        if name.endswith(".scale"):
            return torch.ones(len(seeds), *shape)
        if name.endswith(".shift") or (name.endswith(".bias") and self.init == "glorot"):
            return torch.zeros(len(seeds), *shape)
        layer = int(name.split(".")[1])
        fan_out = self.fan_out if layer == self.layers else shape[-1]
        limit = self.limit(self._sizes()[layer][0], fan_out)
        return (2 * rng.uniform(seeds, stream, shape) - 1) * limit

    def limit(self, fan_in: int, fan_out: int) -> float:
        """The largest initial weight of a layer."""
        torchs = self.init == "torch"
        return 1 / math.sqrt(fan_in) if torchs else math.sqrt(6 / (fan_in + fan_out))

    # Forward. Runs and twins are one axis N, as are tasks where all heads work at once. P batches
    # with the same tasks, such as two actions for each observation, share one pass.

    def __call__(self, params: Params, x: Tensor, tasks: TaskIndex) -> Tensor:
        """[R, B, inputs] -> [R, (2,) B, outputs]; the input serves both twins."""
        return self.forward(params, x.unsqueeze(1), tasks)[0].squeeze(-3)

    def forward(self, params: Params, x: Tensor, tasks: TaskIndex) -> tuple[Tensor, "ForwardCache"]:
        """[R, P, B, inputs] -> [R, (2,) P, B, outputs], and what the backward pass needs."""
        runs, passes, rows = x.shape[:3]
        x = x.flatten(1, 2)
        if self.ensemble:
            x = x.unsqueeze(1).expand(-1, *self.ensemble, -1, -1).flatten(0, 1)
        trunk = self._pass(self._stacked(params, self._trunk), self._trunk, x)
        layout = Heads(tasks, self._num_tasks(params), passes)
        assigned = layout.assign(trunk.values[-1])
        if layout.even and x.is_cuda and torch.compiler.is_compiling():
            # Heads read a copy in the order of tasks. If the backward pass reads the same copy, the
            # compiler writes nothing else. Slower on a CPU, and with heads of unequal size.
            trunk.values[-1] = layout.sum([part for _, part in assigned], len(x))
        heads = [
            self._pass(self._stacked(params, self._head, task), self._head, part)
            for task, part in assigned
        ]
        out = layout.choose([head.values[-1] for head in heads], len(x))
        shape = (runs, *self.ensemble, passes, rows, self.outputs)
        return out.view(shape), ForwardCache(trunk, heads, layout)

    def hidden(self, params: Params, x: Tensor) -> list[Tensor]:
        """Outputs of the shared hidden layers: [R, B, inputs] -> [R, (2,) B, width] each."""
        if self.ensemble:
            x = x.unsqueeze(1).expand(-1, *self.ensemble, -1, -1).flatten(0, 1)
        values = self._pass(self._stacked(params, self._trunk), self._trunk, x).values[1:]
        return [value.view(-1, *self.ensemble, *value.shape[1:]) for value in values]

    @property
    def _trunk(self) -> range:
        return range(self.layers - self.head_layers)

    @property
    def _head(self) -> range:
        return range(self.layers - self.head_layers, self.layers + 1)

    def _num_tasks(self, params: Params) -> int:
        return params[f"{self.name}.{self.layers}.bias"].shape[self.task_axis]

    def _stacked(self, params: Params, layers: range, task: int | None = None) -> dict[str, Tensor]:
        """Parameters of some layers, of one task's head if one is named: [N, in or 1, out]."""
        names = [f"{layer}.{kind}" for layer in layers for kind in ("weight", "bias")]
        if 0 in layers and self.norm:
            names += ["norm.scale", "norm.shift"]
        stacked = {}
        for name in names:
            x = params[f"{self.name}.{name}"]
            if task is not None and x.shape[self.task_axis] > 1:
                x = x.select(self.task_axis, task)
            rows = x.shape[-2] if name.endswith("weight") else 1
            stacked[name] = x.reshape(-1, rows, x.shape[-1])
        return stacked

    def _pass(self, weights: Params, layers: range, x: Tensor) -> "LayerCache":
        values: list[Tensor] = [x]
        norm: tuple[Tensor, ...] = ()
        for layer in layers:
            x = linear(weights[f"{layer}.bias"], x, weights[f"{layer}.weight"])
            if layer == 0 and self.norm:
                norm = (x, *torch.native_layer_norm(x, x.shape[-1:], None, None, NORM_EPS))
                x = torch.addcmul(weights["norm.shift"], norm[1], weights["norm.scale"])
                x = overwriting_tanh(x)
            elif layer < self.layers:
                x = activate(x, self.activation)
            values.append(x)
        return LayerCache(weights, layers, values, norm)

    # Backward, without autograd.

    def backward(self, params: Params, cache: "ForwardCache", grad: Tensor) -> dict[str, Tensor]:
        """Gradients of all parameters, given that of the first batch's output."""
        first = cache.first
        return self.gradients(params, first, self.deltas(first, grad))

    def deltas(self, cache: "ForwardCache", grad: Tensor) -> "Deltas":
        """Gradients of each layer before its activation, given that of the output."""
        layout, grad = cache.layout, grad.flatten(1 + len(self.ensemble), -2).flatten(0, -3)
        heads = [
            self._deltas(head, part)
            for head, part in zip(cache.heads, layout.split(grad), strict=True)
        ]
        if not self._trunk:
            return Deltas({}, heads)
        inner = [
            self._input_gradient(head, deltas)
            for head, deltas in zip(cache.heads, heads, strict=True)
        ]
        return Deltas(self._deltas(cache.trunk, layout.sum(inner, len(grad))), heads)

    def gradients(
        self, params: Params, cache: "ForwardCache", deltas: "Deltas"
    ) -> dict[str, Tensor]:
        """Gradients of all parameters, from the first of the P batches."""
        passes = cache.layout.passes
        heads = [
            self._weight_gradients(head, head_deltas, passes)
            for head, head_deltas in zip(cache.heads, deltas.heads, strict=True)
        ]
        grads = cache.layout.by_task(heads)
        grads |= self._weight_gradients(cache.trunk, deltas.trunk, passes)
        named = ((name, grads[name.removeprefix(f"{self.name}.")]) for name in self.shapes(1))
        return {name: grad.view_as(params[name]) for name, grad in named}

    def input_gradient(self, cache: "ForwardCache", deltas: "Deltas", first: int) -> Tensor:
        """The gradient of the last batch's columns from `first` on: [R, B, inputs - first]."""
        layout, passes = replace(cache.layout, passes=1), cache.layout.passes
        parts = [(cache.trunk, deltas.trunk)]
        if not self._trunk:
            parts = list(zip(cache.heads, deltas.heads, strict=True))
        inner = [
            self._input_gradient(part, {"0": _last(part_deltas["0"], passes)}, first)
            for part, part_deltas in parts
        ]
        out = inner[0] if self._trunk else layout.sum(inner, len(cache.trunk.values[0]))
        return apart(out, len(out) // math.prod(self.ensemble)).sum(1) if self.ensemble else out

    def _deltas(self, cache: "LayerCache", grad: Tensor) -> dict[str, Tensor]:
        """Gradients of each layer before its activation, and of the norm's result."""
        deltas: dict[str, Tensor] = {}
        for layer in reversed(cache.layers):
            if deltas:
                grad = backward(grad, cache.weights[f"{layer + 1}.weight"])
            value = cache.values[layer - cache.layers.start + 1]
            if layer == 0 and self.norm:
                before, _, mean, inverse_std = cache.norm
                deltas["norm"] = grad = torch.ops.aten.tanh_backward(grad, value)
                grad = torch.ops.aten.native_layer_norm_backward(
                    grad * cache.weights["norm.scale"], before, before.shape[-1:],
                    mean, inverse_std, None, None, [True, False, False],
                )[0]  # fmt: skip
            elif layer < self.layers:
                grad = activation_gradient(grad, value, self.activation)
            deltas[str(layer)] = grad
        return deltas

    def _weight_gradients(
        self, cache: "LayerCache", deltas: Mapping[str, Tensor], passes: int
    ) -> dict[str, Tensor]:
        grads, deltas = {}, {name: _first(x, passes) for name, x in deltas.items()}
        for layer, value in zip(cache.layers, cache.values, strict=False):
            grads[f"{layer}.weight"] = torch.bmm(_first(value, passes).mT, deltas[str(layer)])
            grads[f"{layer}.bias"] = deltas[str(layer)].sum(1)
        if cache.norm:
            grads["norm.scale"] = (deltas["norm"] * _first(cache.norm[1], passes)).sum(1)
            grads["norm.shift"] = deltas["norm"].sum(1)
        return grads

    def _input_gradient(
        self, cache: "LayerCache", deltas: Mapping[str, Tensor], first: int = 0
    ) -> Tensor:
        layer = cache.layers.start
        weight = cache.weights[f"{layer}.weight"]
        return backward(deltas[str(layer)], weight[:, first:] if first else weight)


def _first(x: Tensor, passes: int) -> Tensor:
    """The first of P batches: [N, P * B, ...] -> [N, B, ...]."""
    return x if passes == 1 else x[:, : x.shape[1] // passes]


def _last(x: Tensor, passes: int) -> Tensor:
    return x if passes == 1 else x[:, -(x.shape[1] // passes) :]


class LayerCache(NamedTuple):
    """What some consecutive layers computed: [N, P * B, ...]."""

    weights: Params  # named without the network: [N, ...]
    layers: range
    values: list[Tensor]  # the input, then the output of each layer
    norm: tuple[Tensor, ...]  # of the first layer: input, output, mean, 1 / std; else empty

    def first(self, passes: int) -> "LayerCache":
        values = [_first(x, passes) for x in self.values]
        norm = [_first(x, passes) for x in self.norm]
        # torch's LayerNorm assumes in its backward pass that mean and 1 / std are contiguous.
        norm[2:] = [x.contiguous() for x in norm[2:]]
        return LayerCache(self.weights, self.layers, values, tuple(norm))


class ForwardCache(NamedTuple):
    """What a forward pass of P batches leaves for the backward pass."""

    trunk: LayerCache
    heads: list[LayerCache]
    layout: Heads

    @property
    def first(self) -> "ForwardCache":
        """That of the first batch alone."""
        passes = self.layout.passes
        heads = [head.first(passes) for head in self.heads]
        return ForwardCache(self.trunk.first(passes), heads, replace(self.layout, passes=1))


class Deltas(NamedTuple):
    """Gradients before activations, by layer: [N, P * B, ...]."""

    trunk: dict[str, Tensor]
    heads: list[dict[str, Tensor]]


def make_critic(obs_dim: int, action_dim: int, config: NetworkConfig) -> Network:
    return Network(
        name="critic",
        inputs=obs_dim + action_dim,
        outputs=1,
        ensemble=(2,),
        head_layers=config.critic_head_layers,
        fan_out=1,
        **layer_options(config),
    )


def layer_options(config: NetworkConfig) -> dict[str, Any]:
    """What hidden layers are like, for `Network`."""
    return {
        "units": config.units,
        "norm": config.layer_norm == "on",
        "activation": config.activation,
        "init": config.init,
    }
