"""L2-init: regenerative regularisation (Kumar, Marklund and Van Roy, 2023)."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import torch
from torch import Tensor

from cwbench.learner import Batch, Method, like, option, per_run_sum, sum_over
from cwbench.methods._plasticity import PlasticityConfig, chosen, layered


@dataclass(frozen=True)
class L2InitConfig(PlasticityConfig):
    coef: float = option(
        1e-2,
        "Strength: the penalty is half of it times squared distances.",
        minimum=0,
        per_run=True,
    )
    reduce: Literal["sum", "mean"] = option(
        "sum", "Sum or mean of squares over each kernel or bias; no effect with --decoupled."
    )
    decoupled: bool = option(
        False, "Pull after Adam's step, by lr * coef, independent of the scale of rewards."
    )
    heads: Literal["current", "all"] = option(
        "current",
        "Heads that are pulled: the current task's, or those of finished tasks too.",
        formerly="all",
    )


class L2Init(Method[L2InitConfig]):
    """Pull all weights of the current task towards their initial values."""

    config_class = L2InitConfig

    @cached_property
    def initial(self) -> dict[str, Tensor]:
        """Follows from the seeds, so it need not be stored. LayerNorm is left alone."""
        state = self.trainer.initial_state()
        return {
            name: state[name].to(self.trainer.device)
            for network in chosen(self.config.networks)
            for name in self.trainer.group(network)
            if ".norm." not in name
        }

    def actor_penalty(self, batch: Batch) -> Tensor:
        return self._pull("actor")

    def critic_penalty(self, batch: Batch) -> Tensor:
        return self._pull("critic")

    def _pull(self, network: str) -> Tensor:
        own = [name for name in self.initial if name.startswith(f"{network}.")]
        if not own or self.config.decoupled:
            return torch.zeros(self.trainer.runs, device=self.trainer.device)
        coef = self.per_run(lambda config: config.coef)
        return coef / 2 * sum_over(self._distance(name) for name in own)

    def _distance(self, name: str) -> Tensor:
        now, start = self._pulled(name)
        count = self._entries(name, start) if self.config.reduce == "mean" else 1
        return per_run_sum((now - start) ** 2) / count

    def _entries(self, name: str, pulled: Tensor) -> int:
        """Entries of a kernel or bias in one critic; with all heads, in both and in every head.

        The latter is what results with that option have been trained with.
        """
        network = layered(self.trainer, name.split(".")[0])
        together = 1 if self.config.heads == "all" else math.prod(network.ensemble)
        return pulled[0].numel() // together

    def _pulled(self, name: str) -> tuple[Tensor, Tensor]:
        """What is pulled of a parameter, and towards what.

        Not the heads of finished tasks: they have no other gradient, and Adam takes steps of full
        size however small the coefficient is, so a few hundred updates would undo them.
        """
        now, start = self.trainer.params[name], self.initial[name]
        network = self.trainer.networks[name.split(".")[0]]
        if self.config.heads == "all" or not network.per_task(name):
            return now, start
        axis, position = network.task_axis, self.trainer.position
        return now.select(axis, position), start.select(axis, position)

    def after_update(self, batch: Batch, targets: Tensor) -> None:
        if self.config.decoupled:
            step = self.trainer.sac.lr * self.per_run(lambda config: config.coef)
            for name in self.initial:
                weight, start = self._pulled(name)
                weight.copy_(torch.lerp(weight, start, like(step, weight).expand_as(weight)))
