"""Soft actor-critic's losses and gradients as functions of tensors alone, so that they compile.

Every quantity keeps the run axis: losses are [R], batches [R, B, ...].
"""

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from cwbench.learner.heads import Tasks
from cwbench.learner.networks import Network, Policy, clamp_log_std, squash, squash_gradient
from cwbench.learner.replay import Batch
from cwbench.learner.runaxis import per_run_sum

Params = Mapping[str, Tensor]


class Losses(NamedTuple):
    actor: Tensor  # [R]
    critic: Tensor  # [R]
    alpha: Tensor  # [R]
    q: Tensor  # [R], mean normalised value of the first critic
    entropy: Tensor  # [R], mean estimate


class Learned(NamedTuple):
    """What one update makes of a batch."""

    losses: Losses
    grads: dict[str, Tensor]
    targets: Tensor  # [R, B], in the unit of rewards


def values(critic: Network, params: Params, obs: Tensor, action: Tensor, tasks: Tasks) -> Tensor:
    """Normalised values of both critics: [R, 2, B]."""
    return critic(params, torch.cat([obs, action], -1), tasks).squeeze(-1)


def learn(
    policy: Policy,
    critic: Network,
    params: Params,
    target: Params,
    value: Params,
    batch: Batch,
    noise: Tensor,
    next_noise: Tensor,
    gamma: float,
    target_entropy: float,
) -> Learned:
    """All losses and their gradients, at the same weights, without autograd.

        wanted  r + gamma * (min Q'(s', b') - alpha * log pi(b'|s'))
        critic  sum_B weight * (Q(s, a) - wanted)^2 / 2, both twins, in normalised units
        actor   sum_B weight * (alpha * log pi(b|s) - min Q(s, b))
        alpha   sum_B weight * log alpha * (entropy - target entropy)   entropy = -log pi(b|s)

    b and b' are the policy's own actions, tanh(mean + std * noise). Each loss moves its own
    parameters only. As all are taken at the same weights, the actor passes once over s and s', the
    critics once over a and b.
    """
    tasks, weight, obs = batch.tasks, batch.weight, batch.obs
    both = torch.stack([obs, batch.next_obs], 1)
    out, actor_pass = policy.network.forward(params, both, tasks)  # [R, 2, B, 2A]
    mean, raw = out.chunk(2, -1)
    log_std = clamp_log_std(raw)
    actions, densities = squash(mean, log_std, torch.stack([noise, next_noise], 1))
    action, log_density = actions[:, 0], densities[:, 0]
    alpha = tasks.of(params["log_alpha"]).exp()

    # Targets.
    scale, shift = tasks.of(value["std"]), tasks.of(value["mean"])
    later = values(critic, target, batch.next_obs, actions[:, 1], tasks).amin(1) * scale + shift
    wanted = batch.reward + gamma * (later - alpha * densities[:, 1])

    # Values of the batch's actions and of the actor's, and how the losses change with them. Of the
    # actor's the smaller twin gets the whole gradient; equal ones share it.
    tried = torch.stack([batch.action, action], 1)
    both = torch.cat([obs.unsqueeze(1).expand(-1, 2, -1, -1), tried], -1)
    out, critic_pass = critic.forward(params, both, tasks)
    q, chosen = out.squeeze(-1).unbind(2)  # [R, 2, B] each
    error = q - ((wanted - shift) / scale).unsqueeze(1)
    lead = (chosen[:, 1] - chosen[:, 0]).sign()
    share = 0.5 + 0.5 * torch.stack([lead, -lead], 1)
    slopes = weight[:, None, None] * torch.stack([error, share], 2)  # [R, 2, 2, B]
    deltas = critic.deltas(critic_pass, slopes.unsqueeze(-1))
    grads = critic.gradients(params, critic_pass, deltas)
    by_action = -critic.input_gradient(critic_pass, deltas, obs.shape[-1])

    # From the action to the actor's output.
    price = weight * alpha  # [R, B], what a unit of log density costs
    by_mean, by_log_std = squash_gradient(log_std[:, 0], noise, action, by_action, price)
    by_log_std = by_log_std * (raw[:, 0] == log_std[:, 0])
    by_out, own = torch.cat([by_mean, by_log_std], -1), actor_pass.first
    grads = policy.network.gradients(params, own, policy.network.deltas(own, by_out)) | grads

    # The factor is log alpha, not alpha, as in the reference.
    surplus = weight * (-log_density - target_entropy)
    grads["log_alpha"] = tasks.sums(surplus, params["log_alpha"].shape[1])
    made = Losses(
        per_run_sum(price * log_density - weight * chosen.amin(1)),
        0.5 * per_run_sum((slopes[:, :, 0] * error).sum(1)),
        per_run_sum(surplus * tasks.of(params["log_alpha"])),
        per_run_sum(weight * q[:, 0]),
        -per_run_sum(weight * log_density),
    )
    return Learned(made, grads, wanted)
