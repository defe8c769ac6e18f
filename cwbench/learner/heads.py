"""Which task each row of a batch belongs to, and how rows are spread over the heads of networks."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class TaskIndex:
    """Which task each row of a batch belongs to: [R, B].

    `blocks` gives the same as (task, number of rows) in order, where that is known without reading
    the index: heads are then applied to slices instead of to every row.
    """

    index: Tensor
    blocks: tuple[tuple[int, int], ...] = ()

    def of(self, per_task: Tensor) -> Tensor:
        """A number per run and task, for each row: [R, T] -> [R, B]."""
        return per_task.gather(1, self.index)

    def sums(self, values: Tensor, num_tasks: int) -> Tensor:
        """The sum over each task's rows: [R, B] -> [R, T]."""
        member = self.index.unsqueeze(-1) == torch.arange(num_tasks, device=values.device)
        return (values.unsqueeze(-1) * member).sum(1)

    @staticmethod
    def single(task: int, runs: int, rows: int, device: torch.device) -> "TaskIndex":
        index = torch.full((1, 1), task, device=device).expand(runs, rows)
        return TaskIndex(index, ((task, rows),))

    @staticmethod
    def equal_blocks(
        tasks: Sequence[int], runs: int, rows: int, device: torch.device
    ) -> "TaskIndex":
        """Equally many rows of each task, one task after another."""
        return TaskIndex.join([TaskIndex.single(task, runs, rows, device) for task in tasks])

    @staticmethod
    def join(parts: Sequence["TaskIndex"]) -> "TaskIndex":
        index = torch.cat([part.index for part in parts], 1)
        blocks = [block for part in parts for block in part.blocks]
        return TaskIndex(index, tuple(blocks) if all(part.blocks for part in parts) else ())


@dataclass(frozen=True)
class Heads:
    """How the rows of P batches [N, P * B, ...] are spread over the heads of `count` tasks.

    Heads named by blocks get slices. Where every head gets equally many, in order, all of them work
    in one product, [N * T, P * b, ...]. Where the last one gets more, as when half of a batch is
    the current task's, the rest of its rows are a second product. Where rows of tasks are mixed,
    every head gets every row.
    """

    tasks: TaskIndex
    count: int
    passes: int

    @property
    def even(self) -> bool:
        """Whether every head gets equally many rows, in order."""
        return 0 < self._each == self._sizes[-1]

    @property
    def _each(self) -> int:
        """Each head's rows in the product of all heads; 0 where there is none."""
        if self.count == 1 or [task for task, _ in self.tasks.blocks] != list(range(self.count)):
            return 0
        *others, last = self._sizes
        return others[0] if len(set(others)) == 1 and last >= others[0] else 0

    @property
    def _sizes(self) -> list[int]:
        return [rows for _, rows in self.tasks.blocks]

    def assign(self, x: Tensor) -> list[tuple[int | None, Tensor]]:
        """Each head's task, or None for all at once, and its rows."""
        if self.tasks.blocks:
            named: list[int | None] = [task for task, _ in self.tasks.blocks]
            if self._each:
                named = [None] if self.even else [None, self.count - 1]
            return list(zip(named, self._slices(x), strict=True))
        return [(None, x.unsqueeze(1).expand(-1, self.count, -1, -1).flatten(0, 1))]

    def _slices(self, x: Tensor) -> list[Tensor]:
        if len(self.tasks.blocks) == 1:
            return [x]
        number, _, width = x.shape
        batches = x.view(number, self.passes, -1, width)
        if not self._each:
            return [part.flatten(1, 2) for part in torch.split(batches, self._sizes, 2)]
        common = self.count * self._each
        each = batches[:, :, :common].view(number, self.passes, self.count, -1, width)
        rest = [] if self.even else [batches[:, :, common:].flatten(1, 2)]
        return [each.transpose(1, 2).flatten(2, 3).flatten(0, 1), *rest]

    def _whole(self, parts: Sequence[Tensor], number: int) -> Tensor:
        """The inverse of `_slices`, for N = `number`."""
        if len(self.tasks.blocks) == 1:
            return parts[0]
        width = parts[0].shape[-1]
        batches = []
        if self._each:
            each = parts[0].view(number, self.count, self.passes, -1, width)
            batches, parts = [each.transpose(1, 2).flatten(2, 3)], parts[1:]
        batches += [part.view(number, self.passes, -1, width) for part in parts]
        return (torch.cat(batches, 2) if len(batches) > 1 else batches[0]).flatten(1, 2)

    def choose(self, outs: Sequence[Tensor], number: int) -> Tensor:
        """Each row's output from its own head: [N, P * B, K]."""
        if self.tasks.blocks:
            return self._whole(outs, number)
        index = self._head_index(number, outs[0].shape[-1])
        return apart(outs[0], number).gather(1, index).squeeze(1)

    def split(self, grad: Tensor) -> list[Tensor]:
        """The gradient of each head's output; the inverse of `choose`."""
        if self.tasks.blocks:
            return self._slices(grad)
        number, rows, width = grad.shape
        whole = grad.new_zeros(number, self.count, rows, width)
        return [whole.scatter(1, self._head_index(number, width), grad.unsqueeze(1)).flatten(0, 1)]

    def sum(self, parts: Sequence[Tensor], number: int) -> Tensor:
        """The sum over all heads for each row: [N, P * B, ...]."""
        if self.tasks.blocks:
            return self._whole(parts, number)
        return apart(parts[0], number).sum(1)

    def _head_index(self, number: int, width: int) -> Tensor:
        """The head of each row, as an index for [N, T, P * B, K]."""
        index = self.tasks.index.repeat(1, self.passes)
        index = index.repeat_interleave(number // len(index), 0)
        return index[:, None, :, None].expand(-1, 1, -1, width)

    def by_task(self, heads: Sequence[dict[str, Tensor]]) -> dict[str, Tensor]:
        """Gradients of the heads in the batch, zero for the others: [N, T, ...]."""
        blocks = self.tasks.blocks
        if not blocks or self.even or (self.count == 1 and len(heads) == 1):
            return heads[0]
        if self._each:
            every, rest = heads
            for name, grad in every.items():
                grad.view(-1, self.count, *grad.shape[1:])[:, -1].add_(rest[name])
            return every
        if sorted(task for task, _ in blocks) == list(range(self.count)):
            order = sorted(range(self.count), key=lambda block: blocks[block][0])
            return {
                name: torch.stack([heads[block][name] for block in order], 1) for name in heads[0]
            }
        grads = {}
        for name, some in heads[0].items():
            grads[name] = some.new_zeros(len(some), self.count, *some.shape[1:])
            for (task, _), head in zip(blocks, heads, strict=True):
                grads[name][:, task].add_(head[name])
        return grads


def apart(x: Tensor, count: int) -> Tensor:
    """The inverse of flatten(0, 1): [count * n, ...] -> [count, n, ...]."""
    return x.view(count, -1, *x.shape[1:])
