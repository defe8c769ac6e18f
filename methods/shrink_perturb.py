"""Shrink and perturb (Ash and Adams, NeurIPS 2020), at the start of each task."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from cwbench.learner import Method, like, option
from cwbench.methods._plasticity import PlasticityConfig, chosen


@dataclass(frozen=True)
class ShrinkPerturbConfig(PlasticityConfig):
    shrink: float = option(0.8, "Factor of the old weights.", minimum=0, per_run=True)
    perturb: float = option(0.2, "Factor of the new weights.", minimum=0, per_run=True)
    targets: Literal["copied", "mixed"] = option(
        "copied",
        "Target networks: copied from the critics, or mixed with the same new weights.",
        formerly="mixed",
    )


class ShrinkPerturb(Method[ShrinkPerturbConfig]):
    """At a task's start, shrink the shared weights and add a little of new ones."""

    config_class = ShrinkPerturbConfig

    @torch.no_grad()
    def on_task_start(self, position: int) -> None:
        if not position:
            return
        trainer = self.trainer
        for network in chosen(self.config.networks):
            for name, fresh in trainer.fresh_trunk(network, f"@{position}-shrink").items():
                weight, target = trainer.params[name], trainer.target.get(name)
                weight.copy_(self.mixed(name, weight, fresh))
                if target is not None:
                    copied = self.config.targets == "copied"
                    target.copy_(weight if copied else self.mixed(name, target, fresh))

    def mixed(self, name: str, old: Tensor, fresh: Tensor) -> Tensor:
        shrink = like(self.per_run(lambda config: config.shrink), old)
        if not name.endswith(".weight"):  # biases and LayerNorm: towards new ones, usually 0 and 1
            return torch.lerp(fresh, old, shrink.expand_as(old))
        return shrink * old + like(self.per_run(lambda config: config.perturb), old) * fresh
