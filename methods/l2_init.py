"""L2-init: regenerative regularisation (Kumar, Marklund and Van Roy, 2023)."""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import torch
from torch import Tensor

from cwbench.learner import Batch, Method, like, option, per_run_sum, sum_over
from cwbench.methods._plasticity import PlasticityConfig, chosen


@dataclass(frozen=True)
class L2InitConfig(PlasticityConfig):
    coef: float = option(
        1e-2, "Strength of the pull; the penalty is half of it.", minimum=0, per_run=True
    )
    reduce: Literal["sum", "mean"] = option("sum", "Sum or mean of squares over each tensor.")
    decoupled: bool = option(
        False, "Pull after Adam's step, by lr * coef, independent of the scale of rewards."
    )


class L2Init(Method[L2InitConfig]):
    """Pull all weights towards their initial values."""

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
        square = per_run_sum((self.trainer.params[name] - self.initial[name]) ** 2)
        count = self.initial[name][0].numel() if self.config.reduce == "mean" else 1
        return square / count

    def after_update(self, batch: Batch, targets: Tensor) -> None:
        if self.config.decoupled:
            step = self.trainer.sac.lr * self.per_run(lambda config: config.coef)
            for name, start in self.initial.items():
                weight = self.trainer.params[name]
                weight.copy_(torch.lerp(weight, start, like(step, weight).expand_as(weight)))
