"""The losses of `losses.py` and their gradients, without autograd.

Functions of tensors alone, so that they compile.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from cwbench.learner.losses import Losses, Params, SACGradients, q_values
from cwbench.learner.networks import Network
from cwbench.learner.policy import Policy, squash, squash_gradient
from cwbench.learner.replay import Batch
from cwbench.learner.runaxis import per_run_sum


class _Actions(NamedTuple):
    """The policy's actions in s (first) and s': [R, 2, B, ...]."""

    action: Tensor
    log_pi: Tensor  # [R, 2, B]
    log_std: Tensor
    raw_log_std: Tensor  # before its limits
    cache: Any  # for the network's backward pass, over s


class _Critics(NamedTuple):
    """Values, errors and gradients of both critics."""

    q: Tensor  # [R, 2, B], of the batch's actions
    q_pi: Tensor  # [R, 2, B], of the policy's
    error: Tensor  # [R, 2, B], q - y in normalised units
    by_q: Tensor  # [R, 2, 2, B], the losses' derivatives by q, and minus the actor's by q_pi
    grads: dict[str, Tensor]
    by_action: Tensor  # [R, B, A], the actor loss's derivative by the policy's action


def sac_gradients(
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
) -> SACGradients:
    """All losses and their gradients; `sac_losses` states them.

    As all are taken at the same weights, the actor makes one forward pass over s and s', the
    critics one over the actions of the batch and of the policy.
    """
    tasks, w, log_alphas = batch.tasks, batch.weight, params["log_alpha"]
    actions = _actions(policy, params, batch, torch.stack([noise, next_noise], 1))
    log_pi, alpha = actions.log_pi[:, 0], tasks.of(log_alphas).exp()

    value_std, value_mean = tasks.of(value["std"]), tasks.of(value["mean"])
    next_q = q_values(critic, target, batch.next_obs, actions.action[:, 1], tasks).amin(1)
    next_q = next_q * value_std + value_mean
    y = batch.reward + batch.discount(gamma) * (next_q - alpha * actions.log_pi[:, 1])

    critics = _critics(critic, params, batch, actions.action[:, 0], (y - value_mean) / value_std)
    alpha_w = w * alpha  # [R, B], the derivative of the actor's loss by log pi
    grads = _actor_gradients(policy, params, actions, noise, critics.by_action, alpha_w)
    grads |= critics.grads
    entropy_gap = w * (-log_pi - target_entropy)
    total = per_run_sum(w)
    grads["log_alpha"] = tasks.sums(entropy_gap, log_alphas.shape[1])
    losses = Losses(
        actor=per_run_sum(alpha_w * log_pi - w * critics.q_pi.amin(1)),
        critic=0.5 * per_run_sum((critics.by_q[:, :, 0] * critics.error).sum(1)),
        alpha=per_run_sum(entropy_gap * tasks.of(log_alphas)),
        q=per_run_sum(w * critics.q[:, 0]) / total,
        entropy=-per_run_sum(w * log_pi) / total,
    )
    return SACGradients(losses, grads, y)


def _actions(policy: Policy, params: Params, batch: Batch, noise: Tensor) -> _Actions:
    obs = torch.stack([batch.obs, batch.next_obs], 1)
    out, cache = policy.network.forward(params, obs, batch.tasks)  # [R, 2, B, 2A]
    mean, raw_log_std = out.chunk(2, -1)
    log_std = policy.log_std(raw_log_std)
    return _Actions(*squash(mean, log_std, noise), log_std, raw_log_std, cache)


def _critics(
    critic: Network, params: Params, batch: Batch, action: Tensor, normalised_y: Tensor
) -> _Critics:
    """The actor's gradient goes through the smaller twin; equal twins share it."""
    both_actions = torch.stack([batch.action, action], 1)
    obs = batch.obs.unsqueeze(1).expand(-1, 2, -1, -1)
    out, cache = critic.forward(params, torch.cat([obs, both_actions], -1), batch.tasks)
    q, q_pi = out.squeeze(-1).unbind(2)
    error = q - normalised_y.unsqueeze(1)
    sign = (q_pi[:, 1] - q_pi[:, 0]).sign()
    twin_share = 0.5 + 0.5 * torch.stack([sign, -sign], 1)
    by_q = batch.weight[:, None, None] * torch.stack([error, twin_share], 2)
    deltas = critic.deltas(cache, by_q.unsqueeze(-1))
    grads = critic.gradients(params, cache, deltas)
    by_action = -critic.input_gradient(cache, deltas, batch.obs.shape[-1])
    return _Critics(q, q_pi, error, by_q, grads, by_action)


def _actor_gradients(
    policy: Policy,
    params: Params,
    actions: _Actions,
    noise: Tensor,
    by_action: Tensor,
    by_log_pi: Tensor,
) -> dict[str, Tensor]:
    log_std = actions.log_std[:, 0]
    by_mean, by_log_std = squash_gradient(
        log_std, noise, actions.action[:, 0], by_action, by_log_pi
    )
    by_log_std = policy.log_std_gradient(by_log_std, actions.raw_log_std[:, 0], log_std)
    by_out = torch.cat([by_mean, by_log_std], -1)
    return policy.network.backward(params, actions.cache, by_out)
