"""What an update asks of a method, and checks of what it gets.

Two mistakes would change results without an error: a penalty summed over all runs is broadcast, so
a run depends on its neighbours; and numbers from a global generator differ each time.
"""

import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from cwbench.learner.replay import Batch
from cwbench.learner.rng import Streams
from cwbench.spec.errors import UserError

PER_RUN = "axis 0 is the run: use per_run_sum instead of .sum()"
STREAMS = "draw with self.trainer.streams: normal(name, shape), uniform or index"


class Hooks(Protocol):
    """What an update asks of a method; `Method` says what each hook means."""

    @property
    def interval(self) -> int: ...
    @property
    def captures_interval(self) -> bool: ...
    def at_interval(self) -> None: ...
    def sample_batch(self, size: int) -> Batch: ...
    def actor_penalty(self, batch: Batch) -> Tensor: ...
    def critic_penalty(self, batch: Batch) -> Tensor: ...
    def adjust_gradients(self, grads: dict[str, Tensor]) -> None: ...
    def after_update(self, batch: Batch, targets: Tensor) -> None: ...


def _torch_state() -> Any:
    states = [torch.get_rng_state()]
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        states += torch.cuda.get_rng_state_all()
    return [state.numpy().tobytes() for state in states]


def _numpy_state() -> Any:
    _, keys, position, *rest = np.random.get_state()
    return (np.asarray(keys).tobytes(), position, rest)


GENERATORS: dict[str, Callable[[], Any]] = {
    "torch": _torch_state,
    "numpy.random": _numpy_state,
    "random": random.getstate,
}


@contextmanager
def no_global_randomness(method: object, hook: str) -> Iterator[None]:
    """UserError if the block draws from a generator that runs and restarts do not control."""
    before = {name: state() for name, state in GENERATORS.items()}
    yield
    for name, state in GENERATORS.items():
        if state() != before[name]:
            raise UserError(
                f"{type(method).__name__}.{hook} draws from the global generator of {name}", STREAMS
            )


class CheckedHooks:
    """A method's update hooks, with what they return and draw checked."""

    def __init__(
        self,
        method: Hooks,
        runs: int,
        trained: Mapping[str, Tensor],
        streams: Streams,
        kept: Mapping[str, Mapping[str, Tensor]],
    ) -> None:
        """`kept`: tables that SAC's gradients read, perhaps while penalties are computed."""
        self.method, self.runs, self.trained, self.streams = method, runs, trained, streams
        self.kept = kept
        self.interval, self.captures_interval = method.interval, method.captures_interval

    def at_interval(self) -> None:
        with no_global_randomness(self.method, "at_interval"):
            self.method.at_interval()

    @contextmanager
    def _draws(self, hook: str) -> Iterator[None]:
        """Two hooks may share numbers by their name; one that draws them twice is mistaken."""
        self.streams.drawn = set()
        try:
            with no_global_randomness(self.method, hook):
                yield
        finally:
            self.streams.drawn = None

    def sample_batch(self, size: int) -> Batch:
        with self._draws("sample_batch"):
            batch = self.method.sample_batch(size)
        rows = tuple(batch.reward.shape[1:2])
        for name in ("obs", "action", "reward", "next_obs", "weight"):
            found = tuple(getattr(batch, name).shape)
            if found[:2] != (self.runs, *rows):
                raise self._wrong("sample_batch", f"{name} of shape {list(found)}", "[R, B, ...]")
        return batch

    def actor_penalty(self, batch: Batch) -> Tensor:
        return self._penalty("actor_penalty", batch)

    def critic_penalty(self, batch: Batch) -> Tensor:
        return self._penalty("critic_penalty", batch)

    def adjust_gradients(self, grads: dict[str, Tensor]) -> None:
        shapes = {name: grad.shape for name, grad in grads.items()}
        with self._draws("adjust_gradients"):
            self.method.adjust_gradients(grads)
        for name in shapes.keys() | grads.keys():
            now, before = getattr(grads.get(name), "shape", None), shapes.get(name)
            if now != before:
                gone, new = now is None, before is None
                did = "removed" if gone else "added" if new else "changed the shape of"
                raise UserError(
                    f"{type(self.method).__name__}.adjust_gradients {did} {name!r}",
                    "change gradients in place",
                )

    def after_update(self, batch: Batch, targets: Tensor) -> None:
        with self._draws("after_update"):
            self.method.after_update(batch, targets)

    def _ask(self, hook: str, batch: Batch) -> Tensor:
        with self._draws(hook):
            penalty: Tensor = getattr(self.method, hook)(batch)
        return penalty

    def _penalty(self, hook: str, batch: Batch) -> Tensor:
        before = self._versions(batch)
        penalty = self._ask(hook, batch)
        after = self._versions(batch)
        for name in before:
            if after[name] != before[name]:
                raise UserError(
                    f"{type(self.method).__name__}.{hook} changed {name} in place",
                    "change it in after_update, or a copy",
                )
        if not isinstance(penalty, Tensor):
            raise self._wrong(hook, type(penalty).__name__, f"a tensor [{self.runs}]")
        if penalty.shape != (self.runs,):
            raise self._wrong(hook, f"shape {list(penalty.shape)}", f"[{self.runs}]")
        healthy = self._healthy()  # one run that diverges must not end the others
        if healthy.any() and not (penalty.isfinite() & healthy).any():
            found = str(penalty.detach()[healthy][0].item())
            raise self._wrong(hook, found, "a finite number for each run", "is it 0 / 0?")
        if self.runs > 1 and penalty.requires_grad:
            self._check_neighbours(hook, penalty, batch)
        return penalty

    def _versions(self, batch: Batch) -> dict[str, int]:
        """How often each tensor has been changed in place."""
        tables = {
            f"trainer.{table}[{name!r}]": x
            for table, tensors in self.kept.items()
            for name, x in tensors.items()
        }
        fields = {f"batch.{name}": x for name, x in vars(batch).items() if isinstance(x, Tensor)}
        return {name: x._version for name, x in (tables | fields).items()}

    def _healthy(self) -> Tensor:
        """Runs whose weights are finite: [R]."""
        sums = [x.detach().flatten(1).sum(1) for x in self.trained.values()]
        return torch.stack(sums).isfinite().all(0)

    def _check_neighbours(self, hook: str, penalty: Tensor, batch: Batch) -> None:
        """UserError if the first run's penalty has a gradient in another run's weights."""
        weights = list(self.trained.values())
        try:  # the update needs the graph once more
            found = torch.autograd.grad(penalty[0], weights, retain_graph=True, allow_unused=True)
        except RuntimeError:
            # What was first compiled, by an earlier command perhaps, where one gradient was asked
            # for gives one only: a distillation may share a function with a penalty.
            again = self._ask(hook, batch)[0]
            found = torch.autograd.grad(again, weights, allow_unused=True)
        for name, grad in zip(self.trained, found, strict=True):
            # Of a run that has diverged, zero times its weights is NaN.
            if grad is not None and grad[1:].nan_to_num().any():
                raise UserError(
                    f"{type(self.method).__name__}.{hook} of a run depends on {name} of other runs",
                    PER_RUN,
                )

    def _wrong(self, hook: str, found: str, expected: str, hint: str = PER_RUN) -> UserError:
        return UserError(
            f"{type(self.method).__name__}.{hook} returned {found}, expected {expected}", hint
        )
