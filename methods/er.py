"""Experience replay with a budget: a reservoir of transitions of all finished tasks."""

from dataclasses import dataclass, fields, replace
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
    take_rows,
)

Share = Literal["balanced", "uniform"]


@dataclass(frozen=True)
class ERConfig(MethodConfig):
    memory: int = option(100_000, "Transitions kept of all finished tasks together.", minimum=1)
    memory_batch: int = option(128, "Transitions of the memory per update, at least.", minimum=1)
    share: Share = option(
        "balanced", "Keep equally many of each task, or a uniform sample of all transitions."
    )
    old_weight: float = option(1.0, "Weight of the memory's loss.", minimum=0, per_run=True)
    old_temperatures: Literal["frozen", "tuned"] = option(
        "frozen",
        "Freeze the temperatures of finished tasks, or tune them on the memory.",
        added=True,
    )


class ER(Method[ERConfig]):
    """Replay a bounded memory of old tasks along with the new data."""

    config_class = ERConfig
    keeps_critic = True
    state_names = ("memory", "keys", "task")
    memory: Tensor  # [R, n, F]
    keys: Tensor  # [R, n], random; the smallest are kept
    task: Tensor  # [R, n], the position of each

    def on_task_start(self, position: int) -> None:
        if position == 0:
            replay = self.trainer.replay
            self.memory = replay.rows.new_zeros(replay.runs, 0, replay.width)
            self.keys = self.task = self.memory[..., 0].long()

    def on_task_end(self, position: int) -> None:
        """The kept rows are those with the smallest random keys: a reservoir sample."""
        replay = self.trainer.replay
        stored = replay.stored(position)
        keys = torch.cat([self.keys, replay.random_keys("er", stored.shape[1])], 1)
        task = torch.cat([self.task, torch.full_like(keys[:, self.keys.shape[1] :], position)], 1)
        kept = smallest(keys, task, self.config.memory, self.config.share)
        self.memory = take_rows(torch.cat([self.memory, stored], 1), kept)
        self.keys, self.task = keys.gather(1, kept), task.gather(1, kept)

    def sample_batch(self, size: int) -> Batch:
        """New transitions and old ones: L = L_new + weight * L_old, means each."""
        new = self.trainer.replay.sample(size)
        if not self.trainer.position:
            return new
        old = self.remember()
        weight = like(self.per_run(lambda config: config.old_weight), old.weight)
        return joined(replace(old, weight=weight * old.weight), new)

    def remember(self) -> Batch:
        """Rows of the memory: equally many of each task, or uniform."""
        trainer, old = self.trainer, self.trainer.position
        blocks = old if self.config.share == "balanced" else 1
        kept, size = self.memory.shape[1] // blocks, self.config.memory_batch
        rows = draw_equally(trainer.streams, "er", size, tasks=blocks, kept=kept)  # [R, B]
        tasks = TaskIndex(self.task.gather(1, rows))
        if blocks == old:
            each = rows.shape[1] // old
            tasks = TaskIndex.equal_blocks(range(old), trainer.runs, each, trainer.device)
        return trainer.replay.unpack(take_rows(self.memory, rows), tasks, rows)

    def adjust_gradients(self, grads: dict[str, Tensor]) -> None:
        """Frozen as in RECALL, or tuned as in Perfect Memory: old rows move only old ones."""
        if self.config.old_temperatures == "frozen":
            grads["log_alpha"][:, : self.trainer.position].zero_()


def smallest(keys: Tensor, task: Tensor, budget: int, share: Share) -> Tensor:
    """Which rows to keep, [R, n]: those with the smallest keys, in all or of each task.

    Balanced, they come in the order of tasks, equally many of each.
    """
    order = keys.argsort(stable=True, dim=1)
    if share == "uniform":
        return order[:, :budget]
    order = order.gather(1, task.gather(1, order).argsort(stable=True, dim=1))
    counts = torch.bincount(task[0]).tolist()  # the same in every run
    each = max(1, min(budget // len(counts), *counts))
    parts = torch.split(order, counts, 1)
    return torch.cat([part[:, :each] for part in parts], 1)


def joined(first: Batch, second: Batch) -> Batch:
    tensors = {
        field.name: torch.cat([getattr(first, field.name), getattr(second, field.name)], 1)
        for field in fields(Batch)
        if isinstance(getattr(first, field.name), Tensor)
    }
    return Batch(**tensors, tasks=TaskIndex.join([first.tasks, second.tasks]))
