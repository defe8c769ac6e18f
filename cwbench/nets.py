"""Networks for R runs at once. Weights are plain tensors in a dict, each with a leading run axis.

A network is a trunk that all tasks share and one head per task. How many of the hidden layers
belong to the heads is a number: 0 is the usual multi-head network, all of them is a network per
task that shares nothing.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from cwbench import rng
from cwbench.actor import LEAK, LOG_STD_MAX, LOG_STD_MIN, NORM_EPS

LOG_2PI = math.log(2 * math.pi)
STD_EPS = 1e-8

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

    def sums(self, values: Tensor, tasks: int) -> Tensor:
        """The sum over each task's rows: [R, B] -> [R, T]."""
        own = self.index.unsqueeze(-1) == torch.arange(tasks, device=values.device)
        return (values.unsqueeze(-1) * own).sum(1)

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

    # Forward. Runs and twins are one axis N, as are tasks where every head sees every row.

    def __call__(self, params: Params, x: Tensor, tasks: Tasks) -> Tensor:
        """[R, B, inputs] -> [R, (2,) B, outputs]; the input serves both twins."""
        return self.forward(params, x, tasks)[0]

    def forward(self, params: Params, x: Tensor, tasks: Tasks) -> tuple[Tensor, "Passed"]:
        """The output, and what the way back needs."""
        runs, rows = x.shape[:2]
        if self.lead:
            x = x.unsqueeze(1).expand(-1, *self.lead, -1, -1).flatten(0, 1)
        trunk = self._pass(self._stacked(params, self._trunk), self._trunk, x)
        heads = [
            self._pass(self._stacked(params, self._head, task), self._head, part)
            for task, part in self._parts(params, trunk.values[-1], tasks)
        ]
        outs = [head.values[-1] for head in heads]
        if tasks.blocks:
            out = outs[0] if len(outs) == 1 else torch.cat(outs, 1)
        else:
            out = _apart(outs[0], len(x)).gather(1, self._own(tasks))
        return out.view(runs, *self.lead, rows, self.outputs), Passed(trunk, heads, tasks)

    @property
    def _trunk(self) -> range:
        return range(self.layers - self.head_layers)

    @property
    def _head(self) -> range:
        return range(self.layers - self.head_layers, self.layers + 1)

    def _tasks(self, params: Params) -> int:
        return params[f"{self.name}.{self.layers}.bias"].shape[self.task_axis]

    def _stacked(self, params: Params, layers: range, task: int | None = None) -> dict[str, Tensor]:
        """Parameters of some layers, of one task's head if one is named: [N, in or 1, out]."""
        names = [f"{layer}.{kind}" for layer in layers for kind in ("weight", "bias")]
        if 0 in layers:
            names += ["norm.scale", "norm.shift"]
        stacked = {}
        for name in names:
            x = params[f"{self.name}.{name}"]
            if task is not None and x.shape[self.task_axis] > 1:
                x = x.select(self.task_axis, task)
            rows = x.shape[-2] if name.endswith("weight") else 1
            stacked[name] = x.reshape(-1, rows, x.shape[-1])
        return stacked

    def _parts(self, params: Params, x: Tensor, tasks: Tasks) -> list[tuple[int | None, Tensor]]:
        """Each head's task and rows; in a batch mixed by chance, all rows for all heads."""
        if len(tasks.blocks) == 1:
            return [(tasks.blocks[0][0], x)]
        if tasks.blocks:
            rows = torch.split(x, [rows for _, rows in tasks.blocks], 1)
            return [(task, part) for (task, _), part in zip(tasks.blocks, rows, strict=True)]
        return [(None, x.unsqueeze(1).expand(-1, self._tasks(params), -1, -1).flatten(0, 1))]

    def _own(self, tasks: Tasks) -> Tensor:
        """Where each row's own head is among all heads: an index for [N, T, B, K]."""
        index = tasks.index.repeat_interleave(math.prod(self.lead), 0)
        return index[:, None, :, None].expand(-1, 1, -1, self.outputs)

    def _pass(self, weights: Params, layers: range, x: Tensor) -> "Pass":
        values: list[Tensor] = [x]
        norm: tuple[Tensor, ...] = ()
        for layer in layers:
            x = affine(weights[f"{layer}.bias"], x, weights[f"{layer}.weight"])
            if layer == 0:
                norm = (x, *torch.native_layer_norm(x, x.shape[-1:], None, None, NORM_EPS))
                x = torch.addcmul(weights["norm.shift"], norm[1], weights["norm.scale"])
                x = overwriting_tanh(x)
            elif layer < self.layers:
                x = torch.nn.functional.leaky_relu_(x, LEAK)
            values.append(x)
        return Pass(weights, layers, values, norm)

    # Backward, by hand.

    def gradients(self, params: Params, passed: "Passed", grad: Tensor) -> dict[str, Tensor]:
        """Gradients of all parameters, given that of the output."""
        heads, inner = [], []
        for head, part in self._split(passed, grad):
            deltas = self._deltas(head, part)
            heads.append(self._weight_gradients(head, deltas))
            if self._trunk:
                inner.append(self._input_gradient(head, deltas))
        grads = self._by_task(params, passed.tasks, heads)
        if self._trunk:
            deltas = self._deltas(passed.trunk, self._join(passed, inner))
            grads |= self._weight_gradients(passed.trunk, deltas)
        named = ((name, grads[name.removeprefix(f"{self.name}.")]) for name in self.shapes(1))
        return {name: found.view_as(params[name]) for name, found in named}

    def input_gradient(self, passed: "Passed", grad: Tensor, first: int) -> Tensor:
        """The gradient of the input's columns from `first` on: [R, B, inputs - first]."""
        inner = []
        for head, part in self._split(passed, grad):
            deltas = self._deltas(head, part)
            inner.append(self._input_gradient(head, deltas, 0 if self._trunk else first))
        out = self._join(passed, inner)
        if self._trunk:
            out = self._input_gradient(passed.trunk, self._deltas(passed.trunk, out), first)
        return _apart(out, len(out) // math.prod(self.lead)).sum(1) if self.lead else out

    def _split(self, passed: "Passed", grad: Tensor) -> list[tuple["Pass", Tensor]]:
        """Each head's pass and the gradient of its output."""
        grad, blocks = grad.flatten(0, len(self.lead)), passed.tasks.blocks
        if blocks:
            parts = torch.split(grad, [rows for _, rows in blocks], 1)
            return list(zip(passed.heads, parts, strict=True))
        [every] = passed.heads
        whole = _apart(torch.zeros_like(every.values[-1]), len(grad))
        whole = whole.scatter(1, self._own(passed.tasks), grad.unsqueeze(1))
        return [(every, whole.flatten(0, 1))]

    def _join(self, passed: "Passed", parts: list[Tensor]) -> Tensor:
        """From what each head says about its rows to all rows: [N, B, ...]."""
        if passed.tasks.blocks:
            return parts[0] if len(parts) == 1 else torch.cat(parts, 1)
        return _apart(parts[0], len(passed.trunk.values[0])).sum(1)

    def _by_task(
        self, params: Params, tasks: Tasks, heads: list[dict[str, Tensor]]
    ) -> dict[str, Tensor]:
        """Gradients of the heads in the batch, zero for the others: [N, T, ...]."""
        count = self._tasks(params)
        if not tasks.blocks or (count == 1 and len(heads) == 1):
            return heads[0]
        if sorted(task for task, _ in tasks.blocks) == list(range(count)):
            order = sorted(range(count), key=lambda place: tasks.blocks[place][0])
            return {
                name: torch.stack([heads[place][name] for place in order], 1) for name in heads[0]
            }
        grads = {}
        for name, some in heads[0].items():
            grads[name] = some.new_zeros(len(some), count, *some.shape[1:])
            for (task, _), head in zip(tasks.blocks, heads, strict=True):
                grads[name][:, task].add_(head[name])
        return grads

    def _deltas(self, passed: "Pass", grad: Tensor) -> dict[str, Tensor]:
        """Gradients of each layer before its activation, and of the norm's result."""
        deltas: dict[str, Tensor] = {}
        for layer in reversed(passed.layers):
            if deltas:
                grad = torch.bmm(grad, passed.weights[f"{layer + 1}.weight"].mT)
            value = passed.values[layer - passed.layers.start + 1]
            if layer == 0:
                before, _, mean, inverse_std = passed.norm
                deltas["norm"] = grad = torch.ops.aten.tanh_backward(grad, value)
                grad = torch.ops.aten.native_layer_norm_backward(
                    grad * passed.weights["norm.scale"], before, before.shape[-1:],
                    mean, inverse_std, None, None, [True, False, False],
                )[0]  # fmt: skip
            elif layer < self.layers:
                grad = torch.ops.aten.leaky_relu_backward(grad, value, LEAK, True)
            deltas[str(layer)] = grad
        return deltas

    def _weight_gradients(self, passed: "Pass", deltas: Mapping[str, Tensor]) -> dict[str, Tensor]:
        grads = {}
        for layer, value in zip(passed.layers, passed.values, strict=False):
            grads[f"{layer}.weight"] = torch.bmm(value.mT, deltas[str(layer)])
            grads[f"{layer}.bias"] = deltas[str(layer)].sum(1)
        if passed.norm:
            grads["norm.scale"] = (deltas["norm"] * passed.norm[1]).sum(1)
            grads["norm.shift"] = deltas["norm"].sum(1)
        return grads

    def _input_gradient(
        self, passed: "Pass", deltas: Mapping[str, Tensor], first: int = 0
    ) -> Tensor:
        layer = passed.layers.start
        weight = passed.weights[f"{layer}.weight"]
        return torch.bmm(deltas[str(layer)], (weight[:, first:] if first else weight).mT)


def _apart(x: Tensor, count: int) -> Tensor:
    """The inverse of flatten(0, 1): [count * n, ...] -> [count, n, ...]."""
    return x.view(count, -1, *x.shape[1:])


def affine(bias: Tensor, x: Tensor, weight: Tensor) -> Tensor:
    """x @ weight + bias. On a CPU in one call; CUDA's would copy the bias to every row first."""
    return torch.bmm(x, weight) + bias if x.is_cuda else torch.baddbmm(bias, x, weight)


class Pass(NamedTuple):
    """What some consecutive layers did to their input: [N, B, ...]."""

    weights: Params  # named without the network: [N, ...]
    layers: range
    values: list[Tensor]  # the input, then what each layer made of it
    norm: tuple[Tensor, ...]  # of the first layer: input, output, mean, 1 / std; else empty


class Passed(NamedTuple):
    """What a network did to a batch."""

    trunk: Pass
    heads: list[Pass]
    tasks: Tasks


def overwriting_tanh(x: Tensor) -> Tensor:
    """tanh(x), which may overwrite x."""
    if torch.is_grad_enabled() or x.device.type != "cpu":
        return x.tanh_()
    # torch's own takes 1.8 times as long, compiled 2.7 times. Its sigmoid would be faster still,
    # but gives other bits to the few elements that its vectors leave over.
    return torch.rsub(x.mul_(2).exp_().add_(1).reciprocal_(), 1, alpha=2)


def clamp_log_std(x: Tensor) -> Tensor:
    return x.clamp(LOG_STD_MIN, LOG_STD_MAX)


def squash(mean: Tensor, log_std: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
    """Tanh-squashed sample and its log density: [R, B, A] -> [R, B, A], [R, B]."""
    std = log_std.exp()
    u = mean + std * noise
    gaussian = -0.5 * (((u - mean) / (std + STD_EPS)) ** 2 + 2 * log_std + LOG_2PI)
    # Not softplus(-2u): torch gives other bits to the elements that its vectors leave over, so a
    # batch with an odd number of rows would depend on the fleet.
    squeeze = 2 * (math.log(2) - u + torch.nn.functional.logsigmoid(2 * u))
    return torch.tanh(u), (gaussian - squeeze).sum(-1)


def squash_gradient(
    log_std: Tensor, noise: Tensor, action: Tensor, by_action: Tensor, by_density: Tensor
) -> tuple[Tensor, Tensor]:
    """From gradients of action [R, B, A] and log density [R, B] to those of mean and log-std.

    With u the sample before the tanh, d action / du = 1 - action^2 and, because the gap u - mean
    moves with the mean, d log density / du = 2 action.
    """
    std, by_density = log_std.exp(), by_density.unsqueeze(-1)
    by_u = by_action * (1 - action**2) + 2 * by_density * action
    gap = std * noise / (std + STD_EPS)
    by_log_std = by_u * std * noise - by_density * (1 + gap**2 * STD_EPS / (std + STD_EPS))
    return by_u, by_log_std


@dataclass(frozen=True)
class Policy:
    """The actor: mean and log-std of a Gaussian before the tanh."""

    network: Network

    def __call__(self, params: Params, obs: Tensor, tasks: Tasks) -> tuple[Tensor, Tensor]:
        mean, log_std = self.network(params, obs, tasks).chunk(2, -1)
        return mean, clamp_log_std(log_std)


def make_policy(obs_dim: int, action_dim: int, width: int, layers: int, head_layers: int) -> Policy:
    """One output layer for mean and log-std; each is scaled as a layer of its own."""
    return Policy(
        Network("actor", obs_dim, 2 * action_dim, (), width, layers, head_layers, action_dim)
    )


def make_critic(
    obs_dim: int, action_dim: int, width: int, layers: int, head_layers: int
) -> Network:
    return Network("critic", obs_dim + action_dim, 1, (2,), width, layers, head_layers, 1)
