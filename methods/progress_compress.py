"""Progress & Compress (Schwarz et al., 2018), without lateral connections."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from cwbench.learner import Method, Params, TaskIndex, Trainer, option
from cwbench.methods._anchor import IMPORTANCE_SAMPLES, drift, mean_over_examples
from cwbench.methods._distillation import DistillationConfig, distill, imitation
from cwbench.methods.ewc import gaussian_fisher


@dataclass(frozen=True)
class ProgressCompressConfig(DistillationConfig):
    # With the Fisher information before the tanh, 1 weighs old and new divergences alike.
    coef: float = option(
        1.0, "Strength of the pull on the knowledge base.", minimum=0, per_run=True
    )
    decay: float = option(
        0.9, "Factor of old importances at each task's end.", minimum=0, maximum=1
    )
    importance_samples: int = option(**IMPORTANCE_SAMPLES)


class ProgressCompress(Method[ProgressCompressConfig]):
    """Learn with an active actor, then compress it into a knowledge base under online EWC."""

    config_class = ProgressCompressConfig
    state_names = ("base", "importance", "compressed")

    def __init__(self, config: ProgressCompressConfig, trainer: Trainer) -> None:
        super().__init__(config, trainer)
        self.base: dict[str, Tensor] = {}  # the knowledge base: an actor
        self.importance: dict[str, Tensor] = {}  # of its shared weights
        # [R, tasks]: a column for each compressed task, as only shapes are known without waiting
        # for a device.
        self.compressed = torch.zeros(trainer.runs, 0, device=trainer.device)

    def on_task_start(self, position: int) -> None:
        """The knowledge base gets the new head, or all weights, that the active actor has."""
        for name, new in self.trainer.actor_params.items():
            old = self.base.get(name)
            if old is None:
                self.base[name] = new.clone()
            elif old.shape != new.shape:
                axis = self.trainer.task_axis(name)
                heads = new.narrow(axis, old.shape[axis], new.shape[axis] - old.shape[axis])
                self.base[name] = torch.cat([old, heads], axis)

    def on_task_end(self, position: int) -> None:
        active, before = self.trainer.actor_params, dict(self.base)

        def loss(base: Params) -> Tensor:
            divergence = imitation(self.trainer, base, active, head=position)
            return divergence + self._pull(base, before)

        self.base = distill(self.trainer, self.base, loss, self.config.distill_updates)
        for name, new in self._fisher().items():
            old = self.importance.get(name)
            self.importance[name] = new if old is None else new + self.config.decay * old
        column = torch.ones(self.trainer.runs, 1, device=self.trainer.device)
        self.compressed = torch.cat([self.compressed, column], 1)

    def _pull(self, base: Params, before: Params) -> Tensor:
        """(coef / 2) sum_p decay F_p (p - before_p)^2, a second-order estimate of old KLs: [R]."""
        names = [name for name in self.trainer.trunk_names("actor") if name in self.importance]
        if not names:
            return torch.zeros(self.trainer.runs, device=self.trainer.device)
        distance = self.trainer.fast(drift)(
            [base[name] for name in names],
            [before[name] for name in names],
            [self.config.decay * self.importance[name] for name in names],
        )
        return 0.5 * self.per_run(lambda config: config.coef) * distance

    def _fisher(self) -> dict[str, Tensor]:
        """Of the knowledge base's Gaussian before the tanh, with the current task's head."""

        def measure(
            params: Params, weights: Sequence[Tensor], obs: Tensor, action: Tensor, tasks: TaskIndex
        ) -> list[Tensor]:
            mean, log_std = self.trainer.policy(params, obs, tasks)
            return gaussian_fisher(mean[:, 0], log_std[:, 0].exp(), weights)

        samples = self.config.importance_samples
        return mean_over_examples(self.trainer, "actor", samples, measure, self.base)

    def policy_weights(self, position: int) -> Mapping[str, Tensor]:
        """The active actor for the task in training, the knowledge base for all others."""
        finished = position < self.compressed.shape[1]
        return self.base if finished else self.trainer.actor_params
