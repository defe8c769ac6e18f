"""The losses of soft actor-critic (Haarnoja et al. 2018), written to be read.

This file says what is learned. `gradients.py` computes the same losses together with their
gradients, faster; the tests compare the two in every update of every method. To try another loss,
change `sac_losses` and train with `--gradients autograd` into a new results folder: segment ids do
not depend on the loss.

Every quantity keeps the run axis: losses are [R], batches [R, B, ...].
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from cwbench.learner.heads import TaskIndex
from cwbench.learner.networks import Network
from cwbench.learner.policy import Policy, squash
from cwbench.learner.replay import Batch
from cwbench.learner.runaxis import per_run_sum
from cwbench.spec.statistics import STATISTICS

Params = Mapping[str, Tensor]


class Losses(NamedTuple):
    actor: Tensor  # [R]
    critic: Tensor  # [R]
    alpha: Tensor  # [R]
    q: Tensor  # [R], mean normalised value of the first critic
    entropy: Tensor  # [R], mean estimate

    def statistics(self, penalty: Tensor) -> list[Tensor]:
        """What is logged, in the order of `STATISTICS`: [R] each."""
        values = {
            "actor_loss": self.actor,
            "critic_loss": self.critic,
            "penalty": penalty,
            "q": self.q,
            "entropy": self.entropy,
        }
        return [values[name] for name in STATISTICS]


class SACGradients(NamedTuple):
    """What an update computes from a batch."""

    losses: Losses
    grads: dict[str, Tensor]
    targets: Tensor  # [R, B], y in the unit of rewards


def q_values(
    critic: Network, params: Params, obs: Tensor, action: Tensor, tasks: TaskIndex
) -> Tensor:
    """Normalised values of both critics: [R, 2, B]."""
    return critic(params, torch.cat([obs, action], -1), tasks).squeeze(-1)


def sac_losses(
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
) -> tuple[Losses, Tensor]:
    """The losses, for autograd, and the targets y: [R, B].

        y       r + gamma * (min_i Q'_i(s', b') - alpha * log pi(b'|s'))      b' from pi(.|s'); r if
                                                                              s' is terminal
        critic  sum_B w * sum_i (Q_i(s, a) - y)^2 / 2                         in normalised units
        actor   sum_B w * (alpha * log pi(b|s) - min_i Q_i(s, b))             b from pi(.|s)
        alpha   sum_B w * log alpha * (entropy - target entropy)              entropy -log pi(b|s)

    Each loss moves its own parameters only. Critics predict (y - mean) / std with each task's
    statistics in `value`; without normalisation they are 0 and 1. The factor of the temperature's
    loss is log alpha, not alpha, as in the reference implementation.
    """
    tasks, w = batch.tasks, batch.weight
    log_alpha = tasks.of(params["log_alpha"])
    alpha = log_alpha.detach().exp()
    mean, std = tasks.of(value["mean"]), tasks.of(value["std"])

    with torch.no_grad():
        next_action, next_log_pi = squash(*policy(params, batch.next_obs, tasks), next_noise)
        next_q = q_values(critic, target, batch.next_obs, next_action, tasks).amin(1) * std + mean
        y = batch.reward + batch.discount(gamma) * (next_q - alpha * next_log_pi)

    q = q_values(critic, params, batch.obs, batch.action, tasks)
    error = q - ((y - mean) / std).unsqueeze(1)
    critic_loss = per_run_sum(w * (error**2).sum(1) / 2)

    action, log_pi = squash(*policy(params, batch.obs, tasks), noise)
    frozen = {name: p.detach() for name, p in params.items()}
    min_q = q_values(critic, frozen, batch.obs, action, tasks).amin(1)
    actor_loss = per_run_sum(w * (alpha * log_pi - min_q))

    entropy = -log_pi.detach()
    alpha_loss = per_run_sum(w * log_alpha * (entropy - target_entropy))
    total = per_run_sum(w)  # more than 1 where a method adds the losses of two halves
    mean_q = per_run_sum(w * q[:, 0].detach()) / total
    mean_entropy = per_run_sum(w * entropy) / total
    return Losses(actor_loss, critic_loss, alpha_loss, mean_q, mean_entropy), y


def autograd_gradients(
    policy: Policy, critic: Network, params: Params, *others: Any
) -> SACGradients:
    """The gradients of `sac_losses`; takes the same arguments."""
    with torch.enable_grad():
        losses, y = sac_losses(policy, critic, params, *others)
        # A sum over runs, not a mean: a run's gradient must not depend on how many there are.
        total = (losses.actor + losses.critic + losses.alpha).sum()
    trained = {name: p for name, p in params.items() if p.requires_grad}
    grads = torch.autograd.grad(total, list(trained.values()))
    detached = Losses(*(loss.detach() for loss in losses))
    return SACGradients(detached, dict(zip(trained, grads, strict=True)), y)
