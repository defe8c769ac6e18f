"""Distillation: a student learns to act like a teacher on the states of the task that ends."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from cwbench.learner import Adam, MethodConfig, Params, TaskIndex, Trainer, option
from cwbench.methods._cloning import mean_kl

STEPS_PER_UPDATE = 25  # 40,000 updates for a million steps, as many as Reset & Distill makes
Loss = Callable[[Params], Tensor]  # of a student's weights: [R]


@dataclass(frozen=True)
class DistillationConfig(MethodConfig):
    distill_updates: int | None = option(
        None, "Updates of a distillation; none means 4 % of the steps per task.", minimum=0
    )


def distill(
    trainer: Trainer, student: Params, loss: Loss, updates: int | None
) -> dict[str, Tensor]:
    """The student's weights after updates that minimise a loss, with a separate Adam."""
    weights = {name: x.detach().clone().requires_grad_() for name, x in student.items()}
    optimizer = Adam(weights, lr=trainer.sac.lr, eps=trainer.sac.adam_eps)

    def update() -> None:
        total, leaves = loss(weights).sum(), list(weights.values())
        grads = torch.autograd.grad(total, leaves, materialize_grads=True)
        optimizer.step(dict(zip(weights, grads, strict=True)))

    default = max(1, trainer.schedule.steps_per_task // STEPS_PER_UPDATE)
    trainer.retrain(default if updates is None else updates, update)
    return {name: x.detach() for name, x in weights.items()}


def imitation(trainer: Trainer, student: Params, teacher: Params, *, head: int) -> Tensor:
    """KL(teacher || student) on states of the current task, a mean over a batch: [R].

    The teacher acts with head `head`, the student with the current position's.
    """
    batch = trainer.replay.sample(trainer.sac.batch_size, "distill")
    heads = TaskIndex.single(head, trainer.runs, batch.obs.shape[1], trainer.device)
    with torch.no_grad():
        taught = torch.cat(trainer.policy(teacher, batch.obs, heads), -1)
    return trainer.fast(mean_kl)(
        trainer.policy, student, batch.obs, batch.tasks, taught, direction="old_new", reduce="sum"
    )
