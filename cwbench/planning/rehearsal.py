"""A fleet's trainer on random data, which estimates measure.

The real method runs, after random earlier tasks: what an update costs, and what it keeps in
memory, depends on them. What a method requests apart from updates is counted, not done.
"""

import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from cwbench.learner.hooks import no_global_randomness
from cwbench.learner.method import Method, ask
from cwbench.learner.replay import OldTask, Replay
from cwbench.learner.trainer import Trainer
from cwbench.planning.timing import finish, seconds_per_call
from cwbench.spec.config import Gradients
from cwbench.spec.options import rehearsed
from cwbench.spec.segment import Segment
from cwbench.spec.transition import Dims

ROWS = 2000  # random transitions of each task
REPEATS = (50, 150)  # updates of a method's own that are timed on CUDA
LARGE_BATCH = 4096  # on a CPU; above it an update's time and memory are proportional to the batch


@dataclass
class TaskEnd:
    """What a method did at a task's end, or asked for."""

    updates: int = 0
    sac_updates: int = 0  # those of them that are SAC's
    own_seconds: float = 0.0  # that the others would take
    seconds: float = 0.0  # of all but updates


class Rehearsal(Trainer):
    """Ready to train, at the start of the last task of a fleet's segments."""

    method: Method[Any]

    def __init__(
        self,
        fleet: Sequence[Segment],
        method_class: type[Method[Any]],
        dims: Dims,
        device: torch.device,
        *,
        compiled: bool = False,
        gradients: Gradients = "manual",
        memory: bool = True,
    ) -> None:
        """Without `memory`, methods remember little of earlier tasks; updates take as long."""
        first = fleet[0]
        self._rows = torch.Generator().manual_seed(0)  # its own: the caller's draws stay the same
        super().__init__(
            **self.arguments_of(fleet),
            dims=dims,
            device=device,
            compiled=compiled,
            gradients=gradients,
            architecture=method_class.architecture_of(first.setup.options),
        )
        method = method_class(rehearsed(first.setup.options, memory=memory), self)
        self.lanes = ask(method, "lanes", first.position)
        self.task_end = TaskEnd()
        self._budget = 0.0  # seconds for timing an update of the method's own
        self.selection_episodes = 0  # episodes that it asked for at this task's start
        self.begin(method, self._random_replay([0]), try_heads=self._try_heads)
        self.method.use_expert(self._fresh_expert())
        annotations = self._earlier_tasks(0 if first.joint else first.position)
        self.replay = self._last_replay(annotations)
        self._start_task(first.position)
        self.reset_optimizer()

    def _earlier_tasks(self, count: int) -> dict[str, Tensor]:
        """Go through the ends of earlier tasks; returns their annotations."""
        last, annotations = self.position, {}
        for task in range(count):
            self.position = task
            self.replay = self._random_replay([task])
            self._start_task(task)
            self.method.end_task(task)
            annotations = self.replay.new_annotations
        self.position = last
        self.selection_episodes = 0
        return annotations

    def _start_task(self, position: int) -> None:
        with no_global_randomness(self.method, "on_task_start"):
            self.method.on_task_start(position)

    def _last_replay(self, annotations: dict[str, Tensor]) -> Replay:
        """What the last task replays: its own transitions, and old ones if the method keeps any."""
        live = sorted({position for lane in self.lanes for position in lane})
        old = {}
        if self.method.keeps_replay:
            own = {name: values[0] for name, values in annotations.items()}
            task = OldTask([self._random_rows()], [0] * self.runs, [own])
            old = {p: task for p in range(self.position) if p not in live}
        return self._random_replay(live, old)

    def _random_replay(
        self, live: Sequence[int], old: Mapping[int, OldTask] | None = None
    ) -> Replay:
        replay = Replay(
            self.runs, ROWS, self.dims, self.streams, live=live, old=old, fast=self.fast
        )
        rows = self._random_rows()
        for position in live:
            replay.add(position, rows.expand(self.runs, *rows.shape))
        return replay

    def _fresh_expert(self) -> dict[str, Tensor]:
        """An actor with one head, as a single task would leave it."""
        names = [name for name in self.group("actor") if name not in self.trunk_names("actor")]
        heads = {name: self.params[name].narrow(self.task_axis(name), 0, 1) for name in names}
        return {name: x.detach().clone() for name, x in (self.actor_params | heads).items()}

    def _random_rows(self) -> Tensor:
        return torch.randn(ROWS, self.dims.width, generator=self._rows)

    def _try_heads(self, position: int, heads: Sequence[int], episodes: int) -> Tensor:
        self.selection_episodes = len(heads) * episodes
        return torch.zeros(self.runs, len(heads), device=self.device)

    def retrain(
        self, updates: int, update: Callable[[], None] | None = None, *, log_every: int = 0
    ) -> None:
        end = self.task_end
        end.updates += updates
        if update is None:
            end.sac_updates += updates
        elif self._budget and updates:
            start = time.perf_counter()
            end.own_seconds += updates * self._seconds_per_update(update)
            end.seconds -= time.perf_counter() - start

    def _seconds_per_update(self, update: Callable[[], None]) -> float:
        if self.device.type != "cuda":
            return seconds_per_call(update, self._budget)
        few, many = (seconds_per_call(partial(self._repeat, update, n), 0.0) for n in REPEATS)
        return max(0.0, many - few) / (REPEATS[1] - REPEATS[0])  # without those before a capture

    def time_task_end(self, budget: float, options: Any = None) -> TaskEnd:
        """What the method will do at the end of this task; the last thing to ask.

        `budget` is for updates of its own; with 0 they are only counted. `options` replace those
        of rehearsals.
        """
        if options is not None:
            self.method.assign([options] * self.runs)
        self.task_end, self._budget = TaskEnd(), budget
        finish()
        start = time.perf_counter()
        self.method.end_task(self.position)
        finish()
        self.task_end.seconds += time.perf_counter() - start
        return self.task_end

    def count_retraining(self) -> int:
        """Updates that the method will make at the end of this task; likewise the last thing."""
        return self.time_task_end(0.0).updates


def with_batches_at_hand(fleet: Sequence[Segment]) -> tuple[list[Segment], float]:
    """The fleet with batches that a CPU can rehearse, and by how much its own are larger.

    One update with a million transitions takes a core a minute.
    """
    asked = fleet[0].setup.sac.batch_size
    if asked <= LARGE_BATCH:
        return list(fleet), 1.0
    sac = replace(fleet[0].setup.sac, batch_size=LARGE_BATCH)
    smaller = [replace(segment, setup=replace(segment.setup, sac=sac)) for segment in fleet]
    return smaller, asked / LARGE_BATCH


def held_bytes(trainer: Rehearsal) -> int:
    """Tensors between updates, without the replay."""
    moments = trainer.optimizer.state(trainer.runs)
    tables = (trainer.params, trainer.target, trainer.value, moments, trainer.method.state())
    return sum(x.nbytes for table in tables for x in table.values())


class PeakBytes(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """The most memory that tensors made inside the block took at any moment."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.now = self.peak = 0
        self._known: set[int] = set()

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """False: nothing here is compiled, and torch would import its compiler to skip it."""
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        for x in tree_leaves(made):
            if isinstance(x, Tensor):
                self._count(x.untyped_storage())
        return made

    def _count(self, storage: Any) -> None:
        key, size = storage._cdata, storage.nbytes()
        if key not in self._known:
            self._known.add(key)
            self.now += size
            self.peak = max(self.peak, self.now)
            weakref.finalize(storage, self._gone, key, size)

    def _gone(self, key: int, size: int) -> None:
        self._known.discard(key)
        self.now -= size


def run_bytes(segment: Segment, method_class: type[Method[Any]], dims: Dims) -> tuple[int, int]:
    """Memory of one run of a fleet without its replay: what it holds, and what an update needs."""
    fleet, factor = with_batches_at_hand([segment])
    trainer = Rehearsal(fleet, method_class, dims, torch.device("cpu"))
    trainer.train(1)  # makes gradients and moments
    with PeakBytes() as working:
        trainer.train(1)
    return held_bytes(trainer), round(factor * working.peak)
