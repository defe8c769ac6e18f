"""Memory aware synapses (Aljundi et al., 2018), as in Continual World."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from cwbench.learner import Params, TaskIndex
from cwbench.methods._anchor import Anchored, SampledAnchorConfig, mean_over_examples


@dataclass(frozen=True)
class MASConfig(SampledAnchorConfig):
    pass


class MAS(Anchored[MASConfig]):
    """Pull the weights that old tasks' outputs are sensitive to back to their old values."""

    config_class = MASConfig

    def new_importance(self, network: str) -> dict[str, Tensor]:
        measure = {"actor": self.actor_sensitivity, "critic": self.critic_sensitivity}[network]
        return mean_over_examples(self.trainer, network, self.config.importance_samples, measure)

    def actor_sensitivity(
        self,
        params: Params,
        weights: Sequence[Tensor],
        obs: Tensor,
        action: Tensor,
        tasks: TaskIndex,
    ) -> list[Tensor]:
        """|d ||f(x)||^2 / dp| (their eq. 3), where the outputs f are tanh(mean) and log-std."""
        mean, log_std = self.trainer.policy(params, obs, tasks)
        return _absolute_gradients(torch.tanh(mean) ** 2 + log_std**2, weights)

    def critic_sensitivity(
        self,
        params: Params,
        weights: Sequence[Tensor],
        obs: Tensor,
        action: Tensor,
        tasks: TaskIndex,
    ) -> list[Tensor]:
        return _absolute_gradients(self.trainer.q(params, obs, action, tasks) ** 2, weights)


def _absolute_gradients(squares: Tensor, weights: Sequence[Tensor]) -> list[Tensor]:
    # Examples and twins have their own weights, so the sum over them keeps them apart.
    return [grad.abs() for grad in torch.autograd.grad(squares.sum(), weights)]
