"""ReDo: recycle dormant units (Sokar et al., ICML 2023)."""

from dataclasses import dataclass

from cwbench.learner import Method, Trainer, activity, dormancy, option
from cwbench.methods._plasticity import PlasticityConfig, chosen, renew


@dataclass(frozen=True)
class ReDoConfig(PlasticityConfig):
    tau: float = option(
        0.1, "Units at most this active, relative to their layer, are dormant.", minimum=0
    )
    every: int = option(1000, "Updates between two checks for dormant units.", minimum=1)
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
            layers = trainer.hidden(network, batch)
            for layer in reversed(range(len(layers))):  # last layer first: see `renew`
                dormant = dormancy(activity(layers[layer])) <= self.config.tau
                renew(trainer, network, layer, dormant, fresh[f"{network}.{layer}.weight"])
