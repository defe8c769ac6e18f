"""Transitions of R runs: the current task's, and those of earlier tasks where a method keeps them.

All transitions live in one table of rows, so that any mixture is one gather. A row is
(obs, action, reward, next obs) in float32, with a column `terminated` where episodes can end in
terminal states (`spec/transition.py`); a time limit is not terminal.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from cwbench.learner import host_memory
from cwbench.learner.heads import TaskIndex
from cwbench.learner.rng import LARGE, Streams, to_index
from cwbench.spec.errors import UserError
from cwbench.spec.transition import Dims

KEYS = 2**24  # different random keys


@dataclass(frozen=True)
class Batch:
    """Transitions, each with its task and its weight in the losses."""

    obs: Tensor  # [R, B, O]
    action: Tensor  # [R, B, A]
    reward: Tensor  # [R, B]
    next_obs: Tensor  # [R, B, O]
    tasks: TaskIndex  # [R, B]
    weight: Tensor  # [R, B]; losses are weighted sums, 1/B each unless a method says otherwise
    rows: Tensor  # [R, B], their indices in the replay
    terminated: Tensor | None = None  # [R, B], 1 where next_obs is terminal; None: nowhere

    def discount(self, gamma: float) -> float | Tensor:
        """What the value of the next state counts for: nothing if it is terminal."""
        return gamma if self.terminated is None else gamma * (1 - self.terminated)


@dataclass(frozen=True)
class OldTask:
    """What is kept of an earlier position: each distinct parent's rows once, and who uses which."""

    shards: Sequence[Tensor]  # each [n, F]
    slot: Sequence[int]  # run -> shard
    annotations: Sequence[Mapping[str, Tensor]] = ()  # per shard: name -> [n, width]


def draw_equally(streams: Streams, name: str, size: int, *, tasks: int, kept: int) -> Tensor:
    """Rows of a method's own memory, with `kept` of each task, one task after another: [R, B].

    Equally many of each task, at least `size` in all, with replacement.
    """
    each = -(-size // tasks)
    count = torch.full((), kept, device=streams.device)
    first = kept * torch.arange(tasks, device=streams.device).repeat_interleave(each)
    return first + streams.index(name, tasks * each, count)


def take_rows(table: Tensor, rows: Tensor) -> Tensor:
    """Each run's rows of its own table: [R, n, F], [R, B] -> [R, B, F]."""
    return table.gather(1, rows.unsqueeze(-1).expand(-1, -1, table.shape[2]))


class Share(NamedTuple):
    """What a batch takes from consecutive positions: equally many rows of each."""

    start: int  # columns of the positions
    end: int
    each: int
    weight: float = 1.0  # of all its rows together, in the losses

    @property
    def size(self) -> int:
        return (self.end - self.start) * self.each


class Picked(NamedTuple):
    """Each row's number, task and weight in the losses: [R, B]."""

    rows: Tensor
    tasks: Tensor
    weight: Tensor


def pick(
    offset: Tensor,
    sizes: Tensor,
    positions: Sequence[int],
    shares: Sequence[Share],
    bits: Sequence[Tensor],
    large: bool,
) -> Picked:
    """The rows that random bits name: one share after another, one position after another.

    Offsets are [R, T, 1] and sizes [T, 1]. Does not see the transitions: compiled, it would need a
    version for every size of the memory.
    """
    rows, tasks, weights = [], [], []
    for (start, end, each, weight), drawn in zip(shares, bits, strict=True):
        of_each = drawn.view(-1, end - start, each)
        index = to_index(of_each, sizes[start:end], large=large)
        rows.append((offset[:, start:end] + index).flatten(1))
        one = [index.new_full((1, 1), position) for position in positions[start:end]]
        tasks += [x.expand(len(drawn), each) for x in one]
        weights.append(_equal_weights(drawn, weight))
    return Picked(*(x[0] if len(x) == 1 else torch.cat(x, 1) for x in (rows, tasks, weights)))


def pick_of_all(
    offset: Tensor, sizes: Tensor, positions: Sequence[int], bits: Tensor, large: bool
) -> Picked:
    """The rows that random bits name among those of all positions.

    Offsets are [R, T] and sizes [T].
    """
    ends = sizes.cumsum(0)
    index = to_index(bits, ends[-1], large=large)
    task = (index.unsqueeze(-1) >= ends).sum(-1)
    rows = offset.gather(1, task) + index - (ends - sizes)[task]
    return Picked(rows, task + positions[0], _equal_weights(rows))


def _equal_weights(rows: Tensor, total: float = 1.0) -> Tensor:
    return torch.full((), total / rows.shape[1], device=rows.device).expand(rows.shape)


class Replay:
    """Memories of several positions: fixed ones of earlier tasks, FIFO ones of live ones.

    `fast` may compile the functions that pick a batch.
    """

    def __init__(
        self,
        runs: int,
        capacity: int,
        dims: Dims,
        streams: Streams,
        *,
        live: Sequence[int],
        old: Mapping[int, OldTask] | None = None,
        fast: Callable[[Any], Any] = lambda function: function,
    ) -> None:
        old = dict(old or {})
        self._pick, self._pick_of_all = pick, pick_of_all
        if streams.device.type == "cuda":  # a CPU would compile for five seconds and save nothing
            self._pick, self._pick_of_all = fast(pick), fast(pick_of_all)
        self.runs, self.capacity, self.streams, self.live = runs, capacity, streams, tuple(live)
        self.dims = dims
        self.width = self.dims.width
        self.positions = sorted({*old, *live})
        self.added = dict.fromkeys(live, 0)  # transitions of each live position, over all time
        offsets, sizes, top = [], [], 0
        self.old_rows = 0  # the first row after those of old tasks
        for position in self.positions:
            if position in self.added:
                offsets.append([top + run * capacity for run in range(runs)])
                sizes.append(0)
                top += runs * capacity
                continue
            task = old[position]
            starts = [top + sum(map(len, task.shards[:slot])) for slot in range(len(task.shards))]
            offsets.append([starts[slot] for slot in task.slot])
            sizes.append(len(task.shards[0]))
            self.old_rows = top = top + sum(map(len, task.shards))
        most = len(self.live) * capacity + sum(len(task.shards[0]) for task in old.values())
        self.large = most >= LARGE  # of one run
        device = streams.device
        self.rows = host_memory.zeros(top, self.width, device=device)
        self.offset = torch.tensor(offsets, device=device).T.contiguous()  # [R, positions]
        self.sizes = torch.tensor(sizes, device=device)  # [positions]
        self._columns = (self.offset[..., None], self.sizes[:, None], self.positions)
        self.annotations: dict[str, Tensor] = {}  # of old tasks' rows, which come first
        self.new_annotations: dict[str, Tensor] = {}  # for the current task's, [R, n, width]
        for position, task in old.items():
            start = int(self.offset[:, self.positions.index(position)].min())
            self._load(task, start)

    def _load(self, task: OldTask, start: int) -> None:
        for number, shard in enumerate(task.shards):
            self.rows[start : start + len(shard)].copy_(shard)
            for name, values in (task.annotations[number] if task.annotations else {}).items():
                if name not in self.annotations:
                    shape = (self.old_rows, values.shape[1])
                    self.annotations[name] = host_memory.zeros(*shape, device=self.rows.device)
                self.annotations[name][start : start + len(shard)].copy_(values)
            start += len(shard)

    @property
    def bytes(self) -> int:
        return sum(t.numel() * t.element_size() for t in (self.rows, *self.annotations.values()))

    def add(self, position: int, transitions: Tensor) -> None:
        """Append [R, n, F] of a live position; the oldest go when it is full."""
        index, count = self.positions.index(position), transitions.shape[1]
        start = self.added[position]
        steps = torch.arange(start, start + count, device=self.rows.device)
        rows = self.offset[:, index : index + 1] + steps % self.capacity
        self.rows[rows] = transitions.to(self.rows.device, non_blocking=True)
        self.set_added(position, start + count)

    def stored(self, position: int) -> Tensor:
        """The transitions of a live position, in row order: [R, size, F]."""
        start = int(self.offset[0, self.positions.index(position)])
        block = self.rows[start : start + self.runs * self.capacity]
        size = min(self.added[position], self.capacity)
        return block.view(self.runs, self.capacity, self.width)[:, :size]

    def shuffled(self, position: int) -> Tensor:
        """Numbers of a live position's rows in random order: [R, size]."""
        size = min(self.added[position], self.capacity)
        return self.random_keys("shuffled", size).argsort(dim=1, stable=True)

    def random_keys(self, name: str, count: int) -> Tensor:
        """[R, count], outside updates; rows in the order of theirs are in random order."""
        size = torch.full((), KEYS, device=self.rows.device)
        return self.streams.index_once(name, count, size)

    def since(self, position: int, run: int, start: int) -> tuple[int, Tensor]:
        """What a run added after `start` transitions, as far as it is still there: first, rows."""
        if self.added[position] < start:
            raise UserError(
                f"the replay has {self.added[position]:,} transitions, fewer than the {start:,} of "
                "the last snapshot",
                "a method must not remove or change them",
            )
        first = max(start, self.added[position] - self.capacity)
        return first, self.rows[self._row_numbers(position, run, first, self.added[position])]

    def put_back(self, position: int, run: int, first: int, rows: Tensor) -> None:
        """The inverse of `since`; `added` is set when all runs have theirs."""
        numbers = self._row_numbers(position, run, first, first + len(rows))
        self.rows[numbers] = rows.to(self.rows.device)

    def set_added(self, position: int, count: int) -> None:
        self.added[position] = count
        # An assignment of a number would wait for the device.
        self.sizes[self.positions.index(position)].fill_(min(count, self.capacity))

    def _row_numbers(self, position: int, run: int, first: int, end: int) -> Tensor:
        offset = self.offset[run, self.positions.index(position)]
        return offset + torch.arange(first, end, device=self.rows.device) % self.capacity

    def add_annotations(self, name: str, values: Tensor) -> None:
        """Keep [R, size, width] with the current task's transitions, for the tasks to come."""
        self.new_annotations[name] = values

    def sample(self, size: int, name: str = "replay") -> Batch:
        """Uniform from the current task, with replacement."""
        return self._sample({name: self._newest(size)})

    def sample_old(self, size: int, name: str = "replay-old") -> Batch:
        """Uniform from earlier tasks, equally many of each: at least `size` rows in all.

        Drawing a random number of rows per task would have the same mean and a larger variance,
        and heads could no longer be applied to slices.
        """
        return self._sample({name: self._older(size)})

    def sample_both(self, size: int, old_weight: float = 1.0) -> Batch:
        """As `sample_old` and then as `sample`; losses are L_new + weight * L_old, means each."""
        old = self._older(size)._replace(weight=old_weight)
        return self._sample({"replay-old": old, "replay": self._newest(size)})

    def sample_once(self, size: int, name: str) -> Batch:
        """As `sample`, but outside updates, such as at a task's end; one draw for each name."""
        return self._sample_once(name, self._newest(size))

    def sample_old_once(self, size: int, name: str) -> Batch:
        """As `sample_old`, but outside updates; one draw for each name."""
        return self._sample_once(name, self._older(size))

    def _newest(self, size: int) -> Share:
        return Share(len(self.positions) - 1, len(self.positions), size)

    def _older(self, size: int) -> Share:
        count = len(self.positions) - 1
        return Share(0, count, -(-size // count))

    def _sample(self, named: Mapping[str, Share]) -> Batch:
        """Shares under the names of their draws."""
        shares = list(named.values())
        bits = [self.streams.index_bits(name, share.size) for name, share in named.items()]
        return self._batch(self._pick(*self._columns, shares, bits, self.large), shares)

    def _sample_once(self, name: str, share: Share) -> Batch:
        bits = self.streams.index_bits_once(name, share.size)
        return self._batch(pick(*self._columns, [share], [bits], True), [share])

    def _batch(self, picked: Picked, shares: Sequence[Share] = ()) -> Batch:
        rows, tasks, weight = picked
        table = self.rows.index_select(0, rows.flatten()).view(*rows.shape, self.width)
        blocks = tuple(
            (position, share.each)
            for share in shares
            for position in self.positions[share.start : share.end]
        )
        return Batch(
            **self.dims.unpack(table), tasks=TaskIndex(tasks, blocks), weight=weight, rows=rows
        )

    def sample_all(self, size: int) -> Batch:
        """Uniform over all transitions of all tasks, so that longer memories come up more often."""
        bits = self.streams.index_bits("replay-all", size)
        places = (self.offset, self.sizes, self.positions)
        return self._batch(self._pick_of_all(*places, bits, self.large))

    def unpack(self, table: Tensor, tasks: TaskIndex, rows: Tensor) -> Batch:
        """Transitions [R, B, F] as a batch, from wherever a method keeps them."""
        return Batch(
            **self.dims.unpack(table),
            tasks=tasks,
            weight=_equal_weights(rows),
            rows=rows,
        )

    def annotations_of(self, name: str, rows: Tensor) -> Tensor:
        """Annotations of old transitions, for the given rows: [R, B, width]."""
        return self.annotations[name][rows]
