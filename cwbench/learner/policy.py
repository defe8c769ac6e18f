"""The actor's distribution: a Gaussian squashed by tanh, over any actor network."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from cwbench.learner.heads import TaskIndex
from cwbench.learner.networks import Network, Params, layer_options
from cwbench.spec.actor_layout import ActorLayout
from cwbench.spec.config import Activation, LogStd, NetworkConfig

LOG_2PI = math.log(2 * math.pi)
STD_EPS = 1e-8


class ActorNetwork(Protocol):
    """What trainer and losses ask of an actor: the usual `Network`, or an `Architecture`."""

    @property
    def layers(self) -> int: ...
    @property
    def head_layers(self) -> int: ...
    @property
    def activation(self) -> Activation: ...
    @property
    def task_axis(self) -> int: ...
    @property
    def acting(self) -> bytes: ...
    @property
    def config(self) -> NetworkConfig | None: ...
    def shapes(self, num_tasks: int) -> dict[str, tuple[int, ...]]: ...
    def per_task(self, name: str) -> bool: ...
    def trains(self, name: str, num_tasks: int) -> bool: ...
    def init_trunk(self, seeds: Sequence[int], draw: str = "") -> dict[str, Tensor]: ...
    def init_head(self, seeds: Sequence[int], position: int) -> dict[str, Tensor]: ...
    def __call__(self, params: Params, x: Tensor, tasks: TaskIndex) -> Tensor: ...
    def forward(self, params: Params, x: Tensor, tasks: TaskIndex) -> tuple[Tensor, Any]: ...
    def backward(self, params: Params, cache: Any, grad: Tensor) -> dict[str, Tensor]: ...


def gaussian_kl(mean_p: Tensor, log_std_p: Tensor, mean_q: Tensor, log_std_q: Tensor) -> Tensor:
    """KL(p || q) of one-dimensional Gaussians, elementwise.

    Before the tanh: squashing is one-to-one, so the divergence of the actions is the same.
    """
    spread = (2 * (log_std_p - log_std_q)).exp()
    shift = ((mean_p - mean_q) * (-log_std_q).exp()) ** 2
    return log_std_q - log_std_p + 0.5 * (spread + shift - 1)


def squash(mean: Tensor, log_std: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
    """Tanh-squashed sample and its log density: [R, B, A] -> [R, B, A], [R, B]."""
    std = log_std.exp()
    u = mean + std * noise
    gaussian = -0.5 * (((u - mean) / (std + STD_EPS)) ** 2 + 2 * log_std + LOG_2PI)
    # Not softplus(-2u): torch rounds the tail of a vectorised loop differently, so a batch with an
    # odd number of rows would depend on the fleet.
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

    network: ActorNetwork
    log_std_limit: LogStd
    log_std_range: tuple[float, float]

    def __call__(self, params: Params, obs: Tensor, tasks: TaskIndex) -> tuple[Tensor, Tensor]:
        mean, log_std = self.network(params, obs, tasks).chunk(2, -1)
        return mean, self.log_std(log_std)

    def log_std(self, x: Tensor) -> Tensor:
        """The log-std within its range, from the network's output."""
        low, high = self.log_std_range
        if self.log_std_limit == "clip":
            return x.clamp(low, high)
        return low + (high - low) / 2 * (torch.tanh(x) + 1)

    def log_std_gradient(self, grad: Tensor, x: Tensor, log_std: Tensor) -> Tensor:
        """The gradient of the network's output x, given that of the log-std."""
        low, high = self.log_std_range
        if self.log_std_limit == "clip":
            return grad * (x == log_std)  # none where it was clipped
        return grad * ((high - low) / 2 * (1 - torch.tanh(x) ** 2))

    def layout(self, num_tasks: int) -> ActorLayout:
        """What a worker needs to act with a flat vector of the weights."""
        return ActorLayout(
            self.network.shapes(num_tasks),
            self.network.layers,
            self.network.head_layers,
            self.network.activation,
            self.log_std_limit,
            self.log_std_range,
            self.network.acting,
            self.network.config,
        )


def make_policy(
    obs_dim: int,
    action_dim: int,
    config: NetworkConfig,
    architecture: Callable[[int, int, NetworkConfig], ActorNetwork] | None = None,
) -> Policy:
    """One output layer for mean and log-std; each is scaled as a separate layer."""
    if architecture is not None:
        network = architecture(obs_dim, action_dim, config)
    else:
        network = plain_actor(obs_dim, action_dim, config)
    return Policy(network, config.log_std, config.log_std_bounds)


def plain_actor(obs_dim: int, action_dim: int, config: NetworkConfig) -> Network:
    """The usual actor."""
    return Network(
        name="actor",
        inputs=obs_dim,
        outputs=2 * action_dim,
        ensemble=(),
        head_layers=config.actor_head_layers,
        fan_out=action_dim,
        **layer_options(config),
    )
