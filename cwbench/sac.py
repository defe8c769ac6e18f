"""Soft actor-critic's losses and gradients as functions of tensors alone, so that they compile.

Every quantity keeps the run axis: losses are [R], batches [R, B, ...].
"""

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from cwbench.nets import (
    Network,
    Passed,
    Policy,
    Tasks,
    clamp_log_std,
    squash,
    squash_gradient,
)
from cwbench.replay import Batch
from cwbench.runaxis import per_run_sum

Params = Mapping[str, Tensor]


class Losses(NamedTuple):
    actor: Tensor  # [R]
    critic: Tensor  # [R]
    alpha: Tensor  # [R]
    q: Tensor  # [R], mean normalised value of the first critic
    entropy: Tensor  # [R], mean estimate


def act(
    policy: Policy, params: Params, obs: Tensor, tasks: Tasks, noise: Tensor
) -> tuple[Tensor, Tensor]:
    """A fresh action for each row and its log density: [R, B, A], [R, B]."""
    mean, log_std = policy(params, obs, tasks)
    return squash(mean, log_std, noise)


def values(critic: Network, params: Params, obs: Tensor, action: Tensor, tasks: Tasks) -> Tensor:
    """Normalised values of both critics: [R, 2, B]."""
    return critic(params, torch.cat([obs, action], -1), tasks).squeeze(-1)


def targets(
    policy: Policy,
    critic: Network,
    params: Params,
    target: Params,
    value: Params,
    batch: Batch,
    noise: Tensor,
    gamma: float,
) -> Tensor:
    """r + gamma * (min Q' - alpha * log pi), in the unit of rewards: [R, B]."""
    action, log_density = act(policy, params, batch.next_obs, batch.tasks, noise)
    q = values(critic, target, batch.next_obs, action, batch.tasks).amin(1)
    q = q * batch.tasks.of(value["std"]) + batch.tasks.of(value["mean"])
    alpha = batch.tasks.of(params["log_alpha"]).exp()
    return batch.reward + gamma * (q - alpha * log_density)


def gradients(
    policy: Policy,
    critic: Network,
    params: Params,
    value: Params,
    batch: Batch,
    wanted: Tensor,
    noise: Tensor,
    target_entropy: float,
) -> tuple[Losses, dict[str, Tensor]]:
    """All losses and their gradients, at the same weights, without autograd.

    `wanted` are the targets in the unit of rewards: [R, B].

        actor   sum_B weight * (alpha * log pi(a|s) - min Q(s, a))      a = tanh(mean + std * noise)
        critic  sum_B weight * (Q - wanted)^2 / 2, both twins, in normalised units
        alpha   sum_B weight * log alpha * (entropy - target entropy)   entropy = -log pi(a|s)

    Each moves its own parameters only.
    """
    tasks, weight = batch.tasks, batch.weight
    out, actor_pass = policy.network.forward(params, batch.obs, tasks)
    mean, raw = out.chunk(2, -1)
    log_std = clamp_log_std(raw)
    action, log_density = squash(mean, log_std, noise)

    # The actor: through the smaller value to the action, then to mean and log-std.
    best, by_action = _ascent(critic, params, batch.obs, action, weight, tasks)
    alpha = tasks.of(params["log_alpha"]).exp()
    price = weight * alpha  # [R, B], what a unit of log density costs
    by_mean, by_log_std = squash_gradient(log_std, noise, action, -by_action, price)
    by_log_std = by_log_std * (raw == log_std)
    grads = policy.network.gradients(params, actor_pass, torch.cat([by_mean, by_log_std], -1))

    # The critics.
    normalised = (wanted - tasks.of(value["mean"])) / tasks.of(value["std"])
    q, critic_pass = _values(critic, params, batch.obs, batch.action, tasks)
    error = q - normalised.unsqueeze(1)  # [R, 2, B]
    slope = weight.unsqueeze(1) * error
    grads |= critic.gradients(params, critic_pass, slope.unsqueeze(-1))

    # The factor is log alpha, not alpha, as in the reference.
    surplus = weight * (-log_density - target_entropy)
    grads["log_alpha"] = tasks.sums(surplus, params["log_alpha"].shape[1])
    made = Losses(
        per_run_sum(price * log_density - weight * best),
        0.5 * per_run_sum((slope * error).sum(1)),
        per_run_sum(surplus * tasks.of(params["log_alpha"])),
        per_run_sum(weight * q[:, 0]),
        -per_run_sum(weight * log_density),
    )
    return made, grads


def _values(
    critic: Network, params: Params, obs: Tensor, action: Tensor, tasks: Tasks
) -> tuple[Tensor, Passed]:
    q, passed = critic.forward(params, torch.cat([obs, action], -1), tasks)
    return q.squeeze(-1), passed


def _ascent(
    critic: Network, params: Params, obs: Tensor, action: Tensor, weight: Tensor, tasks: Tasks
) -> tuple[Tensor, Tensor]:
    """The smaller value of each action, [R, B], and weight * its gradient, [R, B, A]."""
    q, passed = _values(critic, params, obs, action, tasks)
    # The smaller twin gets the whole gradient; equal ones share it.
    lead = (q[:, 1] - q[:, 0]).sign()
    share = weight.unsqueeze(1) * (0.5 + 0.5 * torch.stack([lead, -lead], 1))
    by_action = critic.input_gradient(passed, share.unsqueeze(-1), obs.shape[-1])
    return q.amin(1), by_action
