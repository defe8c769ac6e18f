"""Continual backpropagation (Dohare et al., Nature 2024)."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from cwbench.learner import Method, Trainer, UserError, activity, option
from cwbench.methods._plasticity import PlasticityConfig, chosen, layered, renew


@dataclass(frozen=True)
class ContinualBackpropConfig(PlasticityConfig):
    replacement_rate: float = option(
        1e-4, "Share of mature units replaced per update.", minimum=0, maximum=1
    )
    maturity: int = option(10_000, "Updates that a new unit is protected for.", minimum=0)
    # Below 1, even in 32 bits: the utility is divided by 1 - decay^age.
    decay: float = option(
        0.99, "Decay of the running utility per update.", minimum=0, maximum=0.99999
    )
    every: int = option(10, "Updates between two checks of the units.", minimum=1)
    samples: int = option(128, "Transitions that utility is measured on.", minimum=1)
    first_only: bool = option(False, "Act on the first hidden layer only.", added=True)
    at_once: int = option(
        1, "Units of a layer replaced at one check, at most.", minimum=1, added=True
    )


class ContinualBackprop(Method[ContinualBackpropConfig]):
    """Replace the least useful mature hidden units of a layer by new ones, now and then."""

    config_class = ContinualBackpropConfig
    captures_interval = True
    state_names = ("utility", "age", "due")

    def __init__(self, config: ContinualBackpropConfig, trainer: Trainer) -> None:
        super().__init__(config, trainer)
        self.interval = config.every
        # By `network.layer`: [R, (2,) D], [R, (2,) D] and [R, (2,)].
        self.utility: dict[str, Tensor] = {}
        self.age: dict[str, Tensor] = {}
        self.due: dict[str, Tensor] = {}  # units to replace, with fractions

    def _widths(self, network: str) -> tuple[int, ...]:
        """Units of the layers that it acts on."""
        net = layered(self.trainer, network)
        shared = net.units[: net.layers - net.head_layers]
        return shared[:1] if self.config.first_only else shared

    def on_task_start(self, position: int) -> None:
        """In the first task all units are new; in others those of networks that are reset."""
        networks = chosen(self.config.networks)
        if position:
            networks = tuple(set(networks) & set(self.config.reset.split(",")))
        else:
            widths = [x for network in networks for x in self._widths(network)]
            check_rate(self.config, max(widths, default=0))
        for network in networks:
            for name in self.trainer.trunk_names(network):
                if name.endswith(".bias"):
                    layer = name.removesuffix(".bias")
                    zero = torch.zeros_like(self.trainer.params[name])
                    self.utility[layer], self.age[layer] = zero.detach(), zero.detach().clone()
                    self.due[layer] = zero.detach()[..., 0].clone()

    def at_interval(self) -> None:
        trainer = self.trainer
        batch = trainer.replay.sample(self.config.samples, "cbp")
        for network in chosen(self.config.networks):
            layers = trainer.hidden(network, batch)
            layers = layers[:1] if self.config.first_only else layers
            for layer, hidden in enumerate(layers):
                used = activity(hidden) * self._outgoing(network, layer)
                self._measure(f"{network}.{layer}", used)
            for layer in reversed(range(len(layers))):  # last layer first: see `renew`
                replaced = self._take_due(f"{network}.{layer}")
                renew(trainer, network, layer, replaced, self._incoming(network, layer, replaced))

    def _incoming(self, network: str, layer: int, replaced: Tensor) -> Tensor:
        """New weights for the units that are marked, different ones for each: [R, (2,) in, D]."""
        name, count = f"{network}.{layer}.weight", min(self.config.at_once, replaced.shape[-1])
        shape = (*self.trainer.params[name].shape[1:-1], count)
        draws = self.trainer.streams.large_uniform(f"cbp-{name}", math.prod(shape))
        fresh = layered(self.trainer, network).init_units(layer, draws.view(-1, *shape))
        number = replaced.cumsum(-1).sub(1).clamp(0, count - 1)  # of a unit among the marked ones
        return fresh.take_along_dim(number.unsqueeze(-2), -1)

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
        """The units of a layer to replace now, if any; a new one starts with age zero."""
        utility, age, due = self.utility[layer], self.age[layer], self.due[layer]
        mature = age > self.config.maturity
        due += self.config.replacement_rate * self.config.every * mature.sum(-1)
        useful = corrected(utility, age, self.config.decay)
        replaced = least_useful(useful, mature, due.clamp(max=self.config.at_once))
        due -= replaced.sum(-1)
        utility.masked_fill_(replaced, 0)
        age.masked_fill_(replaced, 0)
        return replaced


def corrected(utility: Tensor, age: Tensor, decay: float) -> Tensor:
    """Without the bias of a running mean that began at zero."""
    return utility / (1 - decay**age)


def least_useful(utility: Tensor, mature: Tensor, count: Tensor) -> Tensor:
    """Marks the mature units of least utility, [R, (2,) D]; `count` [R, (2,)] is rounded down."""
    order = torch.where(mature, utility, torch.inf).argsort(dim=-1, stable=True)
    place = torch.arange(1, mature.shape[-1] + 1, device=mature.device)
    return mature & torch.zeros_like(mature).scatter(-1, order, place <= count.unsqueeze(-1))


def check_rate(config: ContinualBackpropConfig, width: int) -> None:
    """UserError if more units of a layer can be due at a time than are replaced."""
    rate, every, at_once = config.replacement_rate, config.every, config.at_once
    share = round(rate * every, 9)  # of a layer, at a time
    asked = f"--replacement-rate {rate:g} --every {every}"
    if share > 1:
        raise UserError(
            f"{asked} would replace more units than there are",
            f"the largest --every is {int(round(1 / rate, 9))}",
        )
    due = round(share * width, 6)
    if due > at_once:
        raise UserError(
            f"{asked}: {due:g} of {width} units are due at a time, --at-once is {at_once}",
            f"write --at-once {math.ceil(due)}",
        )
