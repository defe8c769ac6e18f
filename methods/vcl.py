"""Variational continual learning (Nguyen et al., ICLR 2018), as in Continual World."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from cwbench.learner import (
    Batch,
    MethodConfig,
    Trainer,
    like,
    option,
    per_run_sum,
    sum_over,
)
from cwbench.methods._reparametrised import Reparametrised, Weights, split

RHO = "rho/"  # before a weight's name: the logarithm of its variance


@dataclass(frozen=True)
class VCLConfig(MethodConfig):
    coef: float = option(
        1.0,
        "Weight of the KL divergence from the previous task's posterior.",
        minimum=0,
        per_run=True,
    )
    # A prior's precision is e^40 at most, so that Adam can square its gradients in 32 bits.
    init_log_variance: float = option(
        -6.0, "Logarithm of the variance that each weight starts with.", minimum=-40, maximum=10
    )
    act: Literal["sample", "mean"] = option(
        "sample", "Act with weights drawn for each chunk and evaluation, or with their means."
    )


class VCL(Reparametrised[VCLConfig]):
    """Give the actor Gaussian weights, held to the previous task's posterior by a KL term."""

    config_class = VCLConfig
    state_names = (*Reparametrised.state_names, "prior", "heads")

    def __init__(self, config: VCLConfig, trainer: Trainer) -> None:
        super().__init__(config, trainer)
        self.prior: dict[str, Tensor] = {}  # means and log variances before this task, shared only
        self.heads: dict[str, Tensor] = {}  # `position/name` -> those of an old task's head

    @property
    def names(self) -> list[str]:
        """Gaussian weights: kernels and biases."""
        return [name for name in self.trainer.group("actor") if ".norm." not in name]

    @property
    def shared(self) -> list[str]:
        """Those that the prior holds; heads have none."""
        trunk = self.trainer.trunk_names("actor")
        return [name for name in self.names if name in trunk]

    def on_task_start(self, position: int) -> None:
        shared = [key for name in self.shared for key in (name, RHO + name)]
        self.prior = {key: self.phi[key].clone() for key in shared} if position else {}
        means = self.live(self.names)
        start = self.config.init_log_variance
        fresh = {RHO + name: torch.full_like(x, start) for name, x in means.items()}
        self.start_phi(means | fresh | self.prior)

    def on_task_end(self, position: int) -> None:
        super().on_task_end(position)
        self.prior = {}
        for key, x in self.phi.items():
            if key.removeprefix(RHO) not in self.shared:
                self.heads[f"{position}/{key}"] = x

    def centre(self) -> Weights:
        return {name: self.phi[name] for name in self.names}

    def weights(self) -> Weights:
        streams, fast = self.trainer.streams, self.trainer.fast
        return self._draw(self.phi, streams.large_normal("vcl", self._size(), fast))

    def acting(self, position: int) -> Weights:
        phi = {key: self.heads.get(f"{position}/{key}", x) for key, x in self.phi.items()}
        if self.config.act == "mean":
            return {name: phi[name] for name in self.names}
        name = f"vcl-{position}-{self.trainer.updates}"
        return self._draw(phi, self.trainer.streams.normal_once(name, self._size()))

    def _size(self) -> int:
        return sum(x[0].numel() for x in self.centre().values())

    def _draw(self, phi: Weights, noise: Tensor) -> Weights:
        means, rhos = [phi[name] for name in self.names], [phi[RHO + name] for name in self.names]
        drawn = self.trainer.fast(draw)(means, rhos, list(split(noise, self.centre()).values()))
        return dict(zip(self.names, drawn, strict=True))

    def actor_penalty(self, batch: Batch) -> Tensor:
        """Its gradient is added in `pull_back`: it is one of phi, not of the weights."""
        if not self.prior:
            return super().actor_penalty(batch)
        tables = (self.phi, self.prior)
        keys = (self.shared, [RHO + name for name in self.shared])
        values = [[table[key] for key in part] for table in tables for part in keys]
        return self.per_run(lambda config: config.coef) * self.trainer.fast(divergence)(*values)

    def pull_back(self, grads: Weights) -> Weights:
        pulled = dict(grads)
        for name, grad in grads.items():
            weight = self.current(self.trainer.params, name)
            pulled[RHO + name] = grad * (weight - self.phi[name]) / 2
        coef = self.per_run(lambda config: config.coef)
        for name in self.shared if self.prior else ():
            pair = (name, RHO + name)
            added = divergence_gradient(*(t[key] for t in (self.phi, self.prior) for key in pair))
            for key, grad in zip(pair, added, strict=True):
                pulled[key] = pulled[key] + like(coef, grad) * grad
        return pulled

    def adjust_gradients(self, grads: dict[str, Tensor]) -> None:
        super().adjust_gradients(grads)
        if self.prior:  # LayerNorm has no posterior: it is frozen after the first task
            for name in self.trainer.group("actor"):
                if ".norm." in name:
                    self.current(grads, name).zero_()


def draw(mean: Sequence[Tensor], rho: Sequence[Tensor], noise: Sequence[Tensor]) -> list[Tensor]:
    """Gaussian weights from standard normal numbers."""
    return [m + (r / 2).exp() * e for m, r, e in zip(mean, rho, noise, strict=True)]


def divergence(
    mean: Sequence[Tensor], rho: Sequence[Tensor], mean0: Sequence[Tensor], rho0: Sequence[Tensor]
) -> Tensor:
    """KL( N(mean, e^rho) || N(mean0, e^rho0) ), summed over all entries of a run: [R]."""
    parts: Iterable[tuple[Tensor, ...]] = zip(mean, rho, mean0, rho0, strict=True)
    return sum_over(
        per_run_sum(r0 - r + (r - r0).exp() + (m - m0) ** 2 * (-r0).exp() - 1) / 2
        for m, r, m0, r0 in parts
    )


def divergence_gradient(
    mean: Tensor, rho: Tensor, mean0: Tensor, rho0: Tensor
) -> tuple[Tensor, Tensor]:
    """Of `divergence`, by mean and rho."""
    return (mean - mean0) * (-rho0).exp(), ((rho - rho0).exp() - 1) / 2
