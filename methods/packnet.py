"""PackNet (Mallya and Lazebnik, 2018), with Continual World's schedule."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from cwbench.learner import Method, MethodConfig, Trainer, like, option


@dataclass(frozen=True)
class PackNetConfig(MethodConfig):
    retrain_updates: int | None = option(
        None, "Updates after pruning; none means a tenth of the steps per task.", minimum=0
    )
    retrain_log_every: int = option(
        0,
        "Evaluate all tasks before every N of these updates, into retraining.csv; 0: never.",
        minimum=0,
        added=True,
    )


class PackNet(Method[PackNetConfig]):
    """Give each task its share of the actor's weights, and never change a share again.

    Only the actor's shared weights are packed; critics, heads and alpha train freely.
    """

    config_class = PackNetConfig
    preset = {"clip_norm": 2e-5}
    state_names = ("owner", "free")
    needs_length = True

    def __init__(self, config: PackNetConfig, trainer: Trainer) -> None:
        super().__init__(config, trainer)
        self.owner: dict[str, Tensor] = {}  # the position each weight belongs to, like the weight
        self.free: Tensor  # [R], 1 as long as biases and LayerNorm may change, then 0

    def on_task_start(self, position: int) -> None:
        if position == 0:
            params, names = self.trainer.params, self.trainer.trunk_names("actor")
            kernels = [name for name in names if name.endswith(".weight")]
            self.owner = {k: torch.zeros_like(params[k], dtype=torch.int16) for k in kernels}
            self.free = torch.ones(self.trainer.runs, device=self.trainer.device)

    def adjust_gradients(self, grads: dict[str, Tensor]) -> None:
        own = {name: grads[name] for name in self.trainer.trunk_names("actor")}
        self.trainer.fast(mask)(own, self.owner, self.free, self.trainer.position)

    def on_task_end(self, position: int) -> None:
        length = self.trainer.length
        assert length is not None  # needs_length
        if position == length - 1:
            return
        self.free.zero_()
        for name, owner in self.owner.items():
            prune(self.trainer.params[name].detach(), owner, position, left=length - position - 1)
        # Moments would go on moving weights whose gradient is now masked.
        self.trainer.reset_optimizer()
        updates = self.config.retrain_updates
        if updates is None:
            updates = self.trainer.schedule.steps_per_task // 10
        self.trainer.retrain(updates, log_every=self.config.retrain_log_every)

    def policy_weights(self, position: int) -> Mapping[str, Tensor]:
        """The actor as the task left it: weights that a later one trains were zero then."""
        weights = self.trainer.actor_params
        return weights | {k: weights[k] * (owner <= position) for k, owner in self.owner.items()}


def mask(grads: Mapping[str, Tensor], owner: Mapping[str, Tensor], free: Tensor, task: int) -> None:
    """Leave a task's own weights their gradients, and the rest while they are free, in place."""
    for name, grad in grads.items():
        grad.mul_(owner[name] == task if name in owner else like(free, grad))


def prune(weight: Tensor, owner: Tensor, task: int, *, left: int) -> None:
    """Hand the smallest of a task's weights in a layer, [R, in, out], on to the next task.

    They start there from zero. With `left` tasks to come, left / (left + 1) of them go, so that
    each of N tasks ends with about 1/N of the layer.
    """
    owned = owner == task
    size = torch.where(owned, weight.abs(), torch.inf).flatten(1).sort(1).values
    count = owned.flatten(1).sum(1, keepdim=True)
    # quirk: the weight at the threshold goes too, one more than the share, as in the release.
    threshold = size.gather(1, count * left // (left + 1)).squeeze(1)
    freed = owned & (weight.abs() <= like(threshold, weight))
    weight.masked_fill_(freed, 0)
    owner.masked_fill_(freed, task + 1)
