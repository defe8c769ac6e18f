"""What methods against the loss of plasticity share: where they act, and renewing hidden units."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from cwbench.learner import MethodConfig, Network, Trainer, option

Where = Literal["both", "actor", "critic"]


@dataclass(frozen=True)
class PlasticityConfig(MethodConfig):
    networks: Where = option("both", "Networks that it acts on: actor, critic or both.")


def chosen(networks: Where) -> tuple[str, ...]:
    return ("actor", "critic") if networks == "both" else (networks,)


def layered(trainer: Trainer, network: str) -> Network:
    """Actor or critics; methods here leave the actor's architecture as it is."""
    found = trainer.networks[network]
    assert isinstance(found, Network)
    return found


@torch.no_grad()
def renew(trainer: Trainer, network: str, layer: int, units: Tensor, fresh: Tensor) -> None:
    """Reinitialise units of a shared layer: [R, (2,) D] marks them.

    Incoming weights come from `fresh`, [R, (2,) in, D]; outgoing ones become zero, in every
    head, so that the next layer does not notice; with several layers, renew the last one first, or
    its new incoming weights would replace those zeros. Adam's moments of all of these become zero,
    and target networks change likewise.
    """
    own = f"{network}.{layer}"
    norms = {f"{network}.norm.scale": 1, f"{network}.norm.shift": 0}
    if layer or not norms.keys() <= trainer.params.keys():
        norms = {}  # LayerNorm is in the first layer, or nowhere
    outgoing = f"{network}.{layer + 1}.weight"
    column, row = units.unsqueeze(-2), units.unsqueeze(-1)
    if trainer.networks[network].per_task(outgoing):
        row = row.unsqueeze(-3)  # [R, (2,) 1, D, 1]
    tables: list[Mapping[str, Tensor]] = [trainer.params, trainer.target]
    for table in (table for table in tables if outgoing in table):
        weight = table[f"{own}.weight"].detach()
        weight.copy_(torch.where(column, fresh, weight))
        table[f"{own}.bias"].detach().masked_fill_(units, 0)
        for name, start in norms.items():
            table[name].detach().masked_fill_(units, start)
        table[outgoing].detach().masked_fill_(row, 0)
    masks = {f"{own}.weight": column, f"{own}.bias": units, outgoing: row}
    masks |= dict.fromkeys(norms, units)
    for moments in (trainer.optimizer.mean, trainer.optimizer.square):
        for name, mask in masks.items():
            moments[name].masked_fill_(mask, 0)
