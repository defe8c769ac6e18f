"""Parseval regularisation (Chung et al., NeurIPS 2024): keep hidden layers near orthogonal."""

from dataclasses import dataclass

import torch
from torch import Tensor

from cwbench.learner import Method, like, option
from cwbench.methods._plasticity import PlasticityConfig, chosen


@dataclass(frozen=True)
class ParsevalConfig(PlasticityConfig):
    coef: float = option(
        1e-3, "Strength at width 64; others have (64 / width)^2 of it.", minimum=0, per_run=True
    )
    scale: float = option(
        1.0, "Squared length that a unit's incoming weights should have.", above=0
    )
    input_layer: bool = option(False, "Include the first layer, as the release does.")


class Parseval(Method[ParsevalConfig]):
    """Penalise hidden kernels whose units are not orthogonal."""

    config_class = ParsevalConfig

    def adjust_gradients(self, grads: dict[str, Tensor]) -> None:
        coef = self.per_run(lambda config: config.coef)
        for name in self.kernels():
            weight = self.trainer.params[name].detach()
            # The strength was tuned at width 64 and the release scales it so.
            factor = like(coef * (64 / weight.shape[-1]) ** 2, weight)
            grads[name].add_(factor * penalty_gradient(weight, self.config.scale))

    def kernels(self) -> list[str]:
        """Shared hidden kernels; the output layer is a head."""
        first = {f"{network}.0.weight" for network in chosen(self.config.networks)}
        return [
            name
            for network in chosen(self.config.networks)
            for name in self.trainer.trunk_names(network)
            if name.endswith(".weight") and (self.config.input_layer or name not in first)
        ]


def penalty_gradient(weight: Tensor, scale: float) -> Tensor:
    """Of || W^T W - scale I ||_F^2, with units as columns: 4 W (W^T W - scale I)."""
    flat = weight.flatten(0, -3)  # [N, in, out]
    gram = torch.bmm(flat.mT, flat)
    gram.diagonal(dim1=-2, dim2=-1).sub_(scale)
    return 4 * torch.bmm(flat, gram).view_as(weight)
