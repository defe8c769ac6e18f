"""A quadratic pull of shared weights towards their values at the end of the previous task.

    penalty = coef * sum_p importance_p * (p - anchor_p)^2

Importances add up over tasks; there is one anchor, the latest. What differs between methods is how
important a weight is.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import torch
from torch import Tensor

from cwbench.learner import (
    Batch,
    Method,
    MethodConfig,
    Params,
    TaskIndex,
    Trainer,
    option,
    per_run_sum,
    sum_over,
)

CHUNK = 64  # examples whose gradients are held at once; at width 256 each has 200,000 entries

# An option. The release averages 10 batches of 256, which is the same mean.
IMPORTANCE_SAMPLES: dict[str, Any] = {
    "default": 2560,
    "help": "Transitions that the importances are estimated from at a task's end.",
    "minimum": 1,
    "rehearsal": 1,
}

# (params, weights, obs, action, tasks) -> an importance for each of `weights`, [n, ...] all
Measure = Callable[[Params, Sequence[Tensor], Tensor, Tensor, TaskIndex], Sequence[Tensor]]


@dataclass(frozen=True)
class AnchorConfig(MethodConfig):
    coef: float = option(
        1e4, "Strength of the pull on the actor's shared weights.", minimum=0, per_run=True
    )
    critic_coef: float = option(
        0.0, "Strength of the pull on the critics' shared weights.", minimum=0, per_run=True
    )


@dataclass(frozen=True)
class SampledAnchorConfig(AnchorConfig):
    importance_samples: int = option(**IMPORTANCE_SAMPLES)


C = TypeVar("C", bound=AnchorConfig)


class Anchored(Method[C]):
    """Base of methods that pull; in the first task there is nothing to pull towards."""

    state_names: ClassVar[tuple[str, ...]] = ("importance", "anchor")

    def __init__(self, config: C, trainer: Trainer) -> None:
        super().__init__(config, trainer)
        coefs = {"actor": config.coef, "critic": config.critic_coef}
        self.pulled = [network for network, coef in coefs.items() if coef]
        self.importance: dict[str, Tensor] = {}
        self.anchor: dict[str, Tensor] = {}

    @classmethod
    def keeps_critic_with(cls, config: C) -> bool:
        return config.critic_coef > 0

    def new_importance(self, network: str) -> dict[str, Tensor]:
        """How much each shared weight of a network matters for the task that ends."""
        raise NotImplementedError

    def on_task_end(self, position: int) -> None:
        for network in self.pulled:
            for name, new in self.new_importance(network).items():
                self.importance[name] = new + self.importance.get(name, 0)
                self.anchor[name] = self.trainer.params[name].detach().clone()

    def actor_penalty(self, batch: Batch) -> Tensor:
        return self.per_run(lambda config: config.coef) * self._pull("actor")

    def critic_penalty(self, batch: Batch) -> Tensor:
        return self.per_run(lambda config: config.critic_coef) * self._pull("critic")

    def _pull(self, network: str) -> Tensor:
        # In the trainer's order: that of a dict from a file may differ, and so would the sum.
        names = [name for name in self.trainer.trunk_names(network) if name in self.importance]
        if not names:
            return torch.zeros(self.trainer.runs, device=self.trainer.device)
        tables = (self.trainer.params, self.anchor, self.importance)
        return self.trainer.fast(drift)(*([table[name] for name in names] for table in tables))


def drift(now: Sequence[Tensor], then: Sequence[Tensor], importance: Sequence[Tensor]) -> Tensor:
    """Squared distance of each run's weights, weighted: [R]."""
    parts = zip(now, then, importance, strict=True)
    return sum_over(per_run_sum(factor * (new - old) ** 2) for new, old, factor in parts)


def mean_over_examples(
    trainer: Trainer,
    network: str,
    samples: int,
    measure: Measure,
    params: Params | None = None,
) -> dict[str, Tensor]:
    """Mean of a per-example measure over the current task's transitions: name -> [R, ...].

    It is measured at the trainer's weights, unless others are given. `measure` gets n examples
    where other code has runs, each with its own copy of the weights: so a plain gradient has one
    entry per example. Runs take turns, which bounds the memory and keeps a run's sums its own.
    """
    names = trainer.trunk_names(network)
    if not names:  # each task has its own network
        return {}
    batch = trainer.replay.sample_once(samples, "importance")
    everything = trainer.params if params is None else params
    totals = {name: torch.zeros_like(everything[name]) for name in names}
    for run in range(trainer.runs):
        own = {name: p[run].detach() for name, p in everything.items()}
        for rows in torch.split(torch.arange(samples, device=trainer.device), CHUNK):
            copies = {name: p.expand(len(rows), *p.shape) for name, p in own.items()}
            weights = [copies[name].requires_grad_() for name in names]
            obs, action = batch.obs[run, rows, None], batch.action[run, rows, None]  # [n, 1, ...]
            tasks = TaskIndex.single(trainer.position, len(rows), 1, trainer.device)
            values = measure(copies, weights, obs, action, tasks)
            for name, value in zip(names, values, strict=True):
                totals[name][run] += value.sum(0)
    return {name: total / samples for name, total in totals.items()}
