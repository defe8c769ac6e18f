"""CKA-RL: continual knowledge adaptation (Hu et al., NeurIPS 2025), from the paper's equations."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from cwbench.learner import MethodConfig, Trainer, option, sum_over
from cwbench.methods._reparametrised import Reparametrised, Weights, join, split, weighted_sum


@dataclass(frozen=True)
class CKARLConfig(MethodConfig):
    pool: int = option(8, "Maximum number of knowledge vectors kept.", minimum=1, maximum=1000)
    scope: Literal["all", "heads"] = option(
        "all", "What is composed: the whole actor, or heads only (the rest is fine-tuned)."
    )


class CKARL(Reparametrised[CKARLConfig]):
    """Learn a vector per task on a frozen base, plus a weighted pool of the vectors before."""

    config_class = CKARLConfig
    state_names = (*Reparametrised.state_names, "base", "vectors", "kept")

    def __init__(self, config: CKARLConfig, trainer: Trainer) -> None:
        super().__init__(config, trainer)
        self.base = torch.zeros(trainer.runs, 0)  # [R, P], the actor after the first task
        self.vectors = torch.zeros(trainer.runs, 0, 0)  # [R, n, P], the pool
        self.kept: dict[str, Tensor] = {}  # `position/name` -> shared weights at that task's end

    @property
    def names(self) -> list[str]:
        names = self.trainer.group("actor")
        shared = self.trainer.trunk_names("actor") if self.config.scope == "heads" else []
        return [name for name in names if name not in shared]

    def on_task_start(self, position: int) -> None:
        if position:  # the first task trains the base itself
            count = self.vectors.shape[1]
            beta = self.trainer.streams.normal_once("cka-beta", count) / count
            zero = {name: torch.zeros_like(x) for name, x in self.live(self.names).items()}
            self.start_phi(zero | {"beta": beta, "scale": torch.ones_like(beta[:, :1])})

    def centre(self) -> Weights:
        """base + sum_j softmax(scale * beta)_j vector_j + v."""
        sums = self.base + self.trainer.fast(weighted_sum)(self._shares(), self.vectors)
        own = {name: self.phi[name] for name in self.names}
        return {name: x + own[name] for name, x in split(sums, own).items()}

    def _shares(self) -> Tensor:
        return torch.softmax(self.phi["scale"] * self.phi["beta"], 1)

    def pull_back(self, grads: Weights) -> Weights:
        shares = self._shares()
        along = self.trainer.fast(products)(self.vectors, [grads[name] for name in self.names])
        by_logit = shares * (along - (shares * along).sum(1, keepdim=True))
        own = {
            "beta": self.phi["scale"] * by_logit,
            "scale": (self.phi["beta"] * by_logit).sum(1, keepdim=True),
        }
        return {**grads, **own}

    def on_task_end(self, position: int) -> None:
        super().on_task_end(position)
        if position == 0:
            self.base = join(self.live(self.names).values())
            self.vectors = torch.zeros_like(self.base).unsqueeze(1)
        else:
            new = join(self.phi[name] for name in self.names)
            self.vectors = torch.cat([self.vectors, new.unsqueeze(1)], 1)
            if self.vectors.shape[1] > self.config.pool:
                self.vectors = merge(self.vectors)
        self.phi = {}
        for name in self.trainer.trunk_names("actor"):
            self.kept[f"{position}/{name}"] = self.trainer.params[name].detach().clone()

    def acting(self, position: int) -> Weights:
        """An old task's actor as it was: after a merge it cannot be composed again."""
        if position < self.trainer.position:
            names = self.trainer.trunk_names("actor")
            return {name: self.kept[f"{position}/{name}"] for name in names}
        return super().acting(position)


def products(vectors: Tensor, grads: Sequence[Tensor]) -> Tensor:
    """Of each vector with the gradient: [R, n, P], [R, ...] of P entries in all -> [R, n]."""
    parts = torch.split(vectors, [grad[0].numel() for grad in grads], 2)
    return sum_over(
        (part.view(*part.shape[:2], *grad.shape[1:]) * grad.unsqueeze(1)).sum(-1).flatten(2).sum(-1)
        if grad.dim() > 2
        else (part * grad.unsqueeze(1)).sum(-1)
        for part, grad in zip(parts, grads, strict=True)
    )


def merge(vectors: Tensor) -> Tensor:
    """Replace the two vectors of each run with the largest cosine by their mean: n -> n - 1.

    The mean takes the place of the first of them. A zero vector has cosine 0 with every other.
    """
    runs, count, _ = vectors.shape
    unit = vectors / vectors.norm(dim=2, keepdim=True).clamp(min=1e-12)
    later = torch.ones(count, count, device=vectors.device).triu(1).bool()
    cosine = torch.where(later, torch.bmm(unit, unit.mT), -torch.inf)
    best = cosine.flatten(1).argmax(1)
    first, second = best // count, best % count
    run = torch.arange(runs, device=vectors.device)
    merged = vectors.clone()
    merged[run, first] = (vectors[run, first] + vectors[run, second]) / 2
    left = torch.arange(count - 1, device=vectors.device).expand(runs, -1)
    left = left + (left >= second.unsqueeze(1))  # all but the second
    return merged[run.unsqueeze(1), left]
