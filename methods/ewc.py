"""Elastic weight consolidation (Kirkpatrick et al., 2017), as in Continual World."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from cwbench.learner import Params, TaskIndex, like
from cwbench.methods._anchor import Anchored, SampledAnchorConfig, mean_over_examples

VARIANCE_EPS = 1e-6
SMALLEST = 1e-5  # importance of a weight for an example


@dataclass(frozen=True)
class EWCConfig(SampledAnchorConfig):
    pass


class EWC(Anchored[EWCConfig]):
    """Pull the weights that matter for old tasks, by Fisher information, to their old values."""

    config_class = EWCConfig

    def new_importance(self, network: str) -> dict[str, Tensor]:
        measure = {"actor": self.actor_fisher, "critic": self.critic_fisher}[network]
        return mean_over_examples(self.trainer, network, self.config.importance_samples, measure)

    def actor_fisher(
        self,
        params: Params,
        weights: Sequence[Tensor],
        obs: Tensor,
        action: Tensor,
        tasks: TaskIndex,
    ) -> list[Tensor]:
        mean, log_std = self.trainer.policy(params, obs, tasks)
        # quirk: the mean after the tanh with the std before it, as in the release. It is not the
        # Fisher information of the policy, but what the published coefficient was tuned with.
        fisher = gaussian_fisher(torch.tanh(mean[:, 0]), log_std[:, 0].exp(), weights)
        return [f.clamp(min=SMALLEST) for f in fisher]

    def critic_fisher(
        self,
        params: Params,
        weights: Sequence[Tensor],
        obs: Tensor,
        action: Tensor,
        tasks: TaskIndex,
    ) -> list[Tensor]:
        """Of a Gaussian around Q with unit variance; each twin has its own weights."""
        q = self.trainer.q(params, obs, action, tasks)
        return [grad**2 for grad in torch.autograd.grad(q.sum(), weights)]


def gaussian_fisher(mean: Tensor, std: Tensor, weights: Sequence[Tensor]) -> list[Tensor]:
    """Diagonal Fisher information of independent Gaussians, mean and std [n, A], per example.

    sum_j [(dm_j/dp)^2 + 2 (ds_j/dp)^2] / s_j^2; each example has its own copy of the weights,
    [n, ...].
    """
    fisher = [torch.zeros_like(weight) for weight in weights]
    for j in range(mean.shape[1]):
        of_mean, of_std = (
            torch.autograd.grad(x[:, j].sum(), weights, retain_graph=True, materialize_grads=True)
            for x in (mean, std)
        )
        variance = std[:, j].detach() ** 2 + VARIANCE_EPS
        for f, m, s in zip(fisher, of_mean, of_std, strict=True):
            f += (m**2 + 2 * s**2) / like(variance, f)
    return fisher
