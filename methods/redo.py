"""ReDo: recycle dormant units (Sokar et al., ICML 2023)."""

from dataclasses import dataclass

from torch import Tensor

from cwbench.learner import Method, Trainer, option
from cwbench.methods._plasticity import PlasticityConfig, activity, chosen, renew


@dataclass(frozen=True)
class ReDoConfig(PlasticityConfig):
    tau: float = option(
        0.1, "Units at most this active, relative to their layer, are dormant.", minimum=0
    )
    every: int = option(1000, "Updates between two looks for dormant units.", minimum=1)
    samples: int = option(256, "Transitions that activity is measured on.", minimum=1)


class ReDo(Method[ReDoConfig]):
    """Give dormant hidden units new incoming weights every so often, and no outgoing ones."""

    config_class = ReDoConfig

    def __init__(self, config: ReDoConfig, trainer: Trainer) -> None:
        super().__init__(config, trainer)
        self.interval = config.every

    def at_interval(self) -> None:
        trainer = self.trainer
        draw = f"redo-{trainer.updates}"
        batch = trainer.replay.sample_once(self.config.samples, draw)
        for network in chosen(self.config.networks):
            fresh = trainer.fresh_trunk(network, f"@{trainer.position}-{draw}")
            layers = activity(trainer, network, batch)
            for layer in reversed(range(len(layers))):  # last layer first: see `renew`
                dormant = dormancy(layers[layer]) <= self.config.tau
                renew(trainer, network, layer, dormant, fresh[f"{network}.{layer}.weight"])


def dormancy(active: Tensor) -> Tensor:
    """Activity relative to the layer's mean, which is 1 (their eq. 1): [R, (2,) D]."""
    return active / (active.mean(-1, keepdim=True) + 1e-9)
