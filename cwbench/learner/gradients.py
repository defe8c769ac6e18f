"""The losses of `losses.py` and their gradients, without autograd.

Functions of tensors alone, so that they compile.
"""

import torch
from torch import Tensor

from cwbench.learner.losses import Losses, Params, SACGradients, q_values
from cwbench.learner.networks import Network
from cwbench.learner.policy import Policy, squash, squash_gradient
from cwbench.learner.replay import Batch
from cwbench.learner.runaxis import per_run_sum


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
    tasks, w, obs = batch.tasks, batch.weight, batch.obs
    both_obs = torch.stack([obs, batch.next_obs], 1)
    out, actor_cache = policy.network.forward(params, both_obs, tasks)  # [R, 2, B, 2A]
    mean, raw_log_std = out.chunk(2, -1)
    log_std = policy.log_std(raw_log_std)
    actions, log_pis = squash(mean, log_std, torch.stack([noise, next_noise], 1))
    action, log_pi = actions[:, 0], log_pis[:, 0]
    alpha = tasks.of(params["log_alpha"]).exp()

    # Targets.
    value_std, value_mean = tasks.of(value["std"]), tasks.of(value["mean"])
    next_q = q_values(critic, target, batch.next_obs, actions[:, 1], tasks).amin(1)
    next_q = next_q * value_std + value_mean
    y = batch.reward + batch.discount(gamma) * (next_q - alpha * log_pis[:, 1])

    # Critics, on the actions of the batch (q) and of the policy (q_pi). The actor's gradient goes
    # through the smaller twin; equal twins share it.
    both_actions = torch.stack([batch.action, action], 1)
    critic_in = torch.cat([obs.unsqueeze(1).expand(-1, 2, -1, -1), both_actions], -1)
    out, critic_cache = critic.forward(params, critic_in, tasks)
    q, q_pi = out.squeeze(-1).unbind(2)  # [R, 2, B] each
    error = q - ((y - value_mean) / value_std).unsqueeze(1)
    sign = (q_pi[:, 1] - q_pi[:, 0]).sign()
    twin_share = 0.5 + 0.5 * torch.stack([sign, -sign], 1)
    by_q = w[:, None, None] * torch.stack([error, twin_share], 2)  # [R, 2, 2, B]
    deltas = critic.deltas(critic_cache, by_q.unsqueeze(-1))
    grads = critic.gradients(params, critic_cache, deltas)
    by_action = -critic.input_gradient(critic_cache, deltas, obs.shape[-1])

    # Actor.
    alpha_w = w * alpha  # [R, B], the derivative of the actor's loss by log pi
    by_mean, by_log_std = squash_gradient(log_std[:, 0], noise, action, by_action, alpha_w)
    by_log_std = policy.log_std_gradient(by_log_std, raw_log_std[:, 0], log_std[:, 0])
    by_out = torch.cat([by_mean, by_log_std], -1)
    grads = policy.network.backward(params, actor_cache, by_out) | grads

    # Temperature.
    entropy_gap = w * (-log_pi - target_entropy)
    grads["log_alpha"] = tasks.sums(entropy_gap, params["log_alpha"].shape[1])
    losses = Losses(
        actor=per_run_sum(alpha_w * log_pi - w * q_pi.amin(1)),
        critic=0.5 * per_run_sum((by_q[:, :, 0] * error).sum(1)),
        alpha=per_run_sum(entropy_gap * tasks.of(params["log_alpha"])),
        q=per_run_sum(w * q[:, 0]),
        entropy=-per_run_sum(w * log_pi),
    )
    return SACGradients(losses, grads, y)
