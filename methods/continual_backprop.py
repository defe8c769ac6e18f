"""Continual backpropagation (Dohare et al., Nature 2024)."""

from dataclasses import dataclass

import torch
from torch import Tensor

from cwbench.learner import Method, Trainer, activity, option
from cwbench.methods._plasticity import PlasticityConfig, chosen, layered, renew


@dataclass(frozen=True)
class ContinualBackpropConfig(PlasticityConfig):
    replacement_rate: float = option(1e-4, "Share of mature units replaced per update.", minimum=0)
    maturity: int = option(10_000, "Updates that a new unit is protected for.", minimum=0)
    # Below 1, also in 32 bits: the utility is divided by 1 - decay^age.
    decay: float = option(
        0.99, "Decay of the running utility per update.", minimum=0, maximum=0.99999
    )
    every: int = option(10, "Updates between two looks at the units.", minimum=1)
    samples: int = option(128, "Transitions that utility is measured on.", minimum=1)
    first_only: bool = option(False, "Act on the first hidden layer only.", added=True)


class ContinualBackprop(Method[ContinualBackpropConfig]):
    """Replace the least useful mature hidden unit of a layer by a new one, now and then."""

    config_class = ContinualBackpropConfig
    state_names = ("utility", "age", "due")

    def __init__(self, config: ContinualBackpropConfig, trainer: Trainer) -> None:
        super().__init__(config, trainer)
        self.interval = config.every
        # By `network.layer`: [R, (2,) D], [R, (2,) D] and [R, (2,)].
        self.utility: dict[str, Tensor] = {}
        self.age: dict[str, Tensor] = {}
        self.due: dict[str, Tensor] = {}  # units to replace, with fractions

    def on_task_start(self, position: int) -> None:
        if position:
            return
        for network in chosen(self.config.networks):
            for name in self.trainer.trunk_names(network):
                if name.endswith(".bias"):
                    layer = name.removesuffix(".bias")
                    zero = torch.zeros_like(self.trainer.params[name])
                    self.utility[layer], self.age[layer] = zero.detach(), zero.detach().clone()
                    self.due[layer] = zero.detach()[..., 0].clone()

    def at_interval(self) -> None:
        trainer = self.trainer
        batch = trainer.replay.sample_once(self.config.samples, f"cbp-{trainer.updates}")
        for network in chosen(self.config.networks):
            layers = trainer.hidden(network, batch)
            layers = layers[:1] if self.config.first_only else layers
            for layer, hidden in enumerate(layers):
                used = activity(hidden) * self._outgoing(network, layer)
                self._measure(f"{network}.{layer}", used)
            for layer in reversed(range(len(layers))):  # last layer first: see `renew`
                replaced = self._take_due(f"{network}.{layer}")
                renew(trainer, network, layer, replaced, self._incoming(network, layer))

    def _incoming(self, network: str, layer: int) -> Tensor:
        draw = f"@{self.trainer.position}-cbp-{self.trainer.updates}"
        fresh = layered(self.trainer, network).init_unit(self.trainer.seeds, layer, draw)
        return fresh.to(self.trainer.device)

    def _outgoing(self, network: str, layer: int) -> Tensor:
        """Summed size of each unit's outgoing weights, in the current head: [R, (2,) D]."""
        name, net = f"{network}.{layer + 1}.weight", self.trainer.networks[network]
        weight = self.trainer.params[name].detach()
        if net.per_task(name):
            weight = weight.select(net.task_axis, self.trainer.position)
        return weight.abs().sum(-1)

    def _measure(self, layer: str, contribution: Tensor) -> None:
        decay = self.config.decay**self.config.every
        self.age[layer] += self.config.every
        self.utility[layer].lerp_(contribution, 1 - decay)

    def _take_due(self, layer: str) -> Tensor:
        """The unit of each layer to replace now, if any; a new one starts with age zero."""
        utility, age, due = self.utility[layer], self.age[layer], self.due[layer]
        mature = age > self.config.maturity
        due += self.config.replacement_rate * self.config.every * mature.sum(-1)
        useful = corrected(utility, age, self.config.decay)
        replaced = least_useful(useful, mature) & (due >= 1).unsqueeze(-1)
        due -= replaced.sum(-1)
        utility.masked_fill_(replaced, 0)
        age.masked_fill_(replaced, 0)
        return replaced


def corrected(utility: Tensor, age: Tensor, decay: float) -> Tensor:
    """Without the bias of a running mean that began at zero."""
    return utility / (1 - decay**age)


def least_useful(utility: Tensor, mature: Tensor) -> Tensor:
    """Marks the mature unit of least utility, [R, (2,) D], where there is one."""
    worst = torch.where(mature, utility, torch.inf).argmin(-1, keepdim=True)
    return mature & torch.zeros_like(mature).scatter(-1, worst, True)
