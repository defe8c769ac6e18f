"""Averaged gradient episodic memory (Chaudhry et al., 2019), for SAC as in Continual World."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from cwbench.learner import (
    Batch,
    Method,
    MethodConfig,
    TaskIndex,
    draw_equally,
    like,
    option,
    per_run_sum,
    sum_over,
    take_rows,
)


@dataclass(frozen=True)
class AGEMConfig(MethodConfig):
    memory_size: int = option(10_000, "Transitions kept of each finished task.", minimum=1)
    memory_batch: int = option(128, "Transitions of the memory per update, at least.", minimum=1)
    projection: Literal["separate", "joint"] = option(
        "joint", "Project the gradients of actor and critics as one vector, or each by itself."
    )


class AGEM(Method[AGEMConfig]):
    """Never step against the gradient of a memory of old tasks; project such steps instead."""

    config_class = AGEMConfig
    keeps_critic = True
    state_names = ("memory",)
    memory: Tensor  # [R, finished tasks * kept of each, F], in the order of tasks

    def on_task_start(self, position: int) -> None:
        if position == 0:
            replay = self.trainer.replay
            self.memory = replay.rows.new_zeros(replay.runs, 0, replay.width)

    def on_task_end(self, position: int) -> None:
        replay = self.trainer.replay
        kept = min(self.config.memory_size, int(replay.sizes[-1]))
        rows = replay.sample_once(kept, "memory").rows
        self.memory = torch.cat([self.memory, replay.rows[rows]], 1)

    def adjust_gradients(self, grads: dict[str, Tensor]) -> None:
        if self.trainer.position == 0:
            return
        reference = self.trainer.sac_gradients(self.remember(), "memory-").grads
        actor, critic = (self.trainer.group(network) for network in ("actor", "critic"))
        joint = self.config.projection == "joint"
        for names in [actor + critic] if joint else [actor, critic]:
            project(grads, reference, names)

    def remember(self) -> Batch:
        """Rows of the memory, equally many of each task."""
        trainer, old = self.trainer, self.trainer.position
        kept, size = self.memory.shape[1] // old, self.config.memory_batch
        rows = draw_equally(trainer.streams, "memory", size, tasks=old, kept=kept)  # [R, B]
        each = rows.shape[1] // old
        tasks = TaskIndex.equal_blocks(range(old), trainer.runs, each, trainer.device)
        return trainer.replay.unpack(take_rows(self.memory, rows), tasks, rows)


def project(
    grads: Mapping[str, Tensor], reference: Mapping[str, Tensor], names: Sequence[str]
) -> None:
    """g -= (g.r / r.r) r for each run whose g.r is negative, in place (their eq. 11)."""
    dot = sum_over(per_run_sum(grads[name] * reference[name]) for name in names)
    square = sum_over(per_run_sum(reference[name] ** 2) for name in names)
    # Where r is zero, g.r is zero too, and nothing must change.
    factor = dot.clamp(max=0) / square.clamp(min=torch.finfo(square.dtype).tiny)
    for name in names:
        grads[name].sub_(like(factor, grads[name]) * reference[name])
