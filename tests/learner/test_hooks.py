"""Mistakes of a method's author that would change results without an error."""

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from cwbench.learner import Batch, Method, MethodConfig, Trainer, per_run_sum
from cwbench.learner.hooks import no_global_randomness
from cwbench.learner.method import ask
from cwbench.spec.config import SACConfig
from cwbench.spec.errors import UserError


class Base(Method[MethodConfig]):
    interval = 1


class Scalar(Base):
    def actor_penalty(self, batch: Batch) -> Tensor:
        return (self.trainer.params["actor.0.weight"] ** 2).sum()


class Rows(Base):
    def critic_penalty(self, batch: Batch) -> Tensor:
        return batch.reward**2


class Number(Base):
    def actor_penalty(self, batch: Batch) -> Any:
        return 0.0


class NotFinite(Base):
    def critic_penalty(self, batch: Batch) -> Tensor:
        zero = super().critic_penalty(batch)
        return zero / zero


class Twice(Base):
    def actor_penalty(self, batch: Batch) -> Tensor:
        one, other = (self.trainer.streams.normal("z", (3,)) for _ in range(2))
        return per_run_sum(one - other)


class Noise(Base):
    def adjust_gradients(self, grads: dict[str, Tensor]) -> None:
        grads["log_alpha"] += torch.randn_like(grads["log_alpha"])


class NumpyNoise(Base):
    def after_update(self, batch: Batch, targets: Tensor) -> None:
        np.random.rand()


class PythonNoise(Base):
    def at_interval(self) -> None:
        random.random()


class OneGradient(torch.autograd.Function):
    """As a function whose backward pass torch compiled where the graph was not retained."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        if torch._C._autograd._get_current_graph_task_keep_graph():
            raise RuntimeError("compiled with non-empty donated buffers")
        return grad


class Compiled(Base):
    """Its weights are pulled to zero."""

    def actor_penalty(self, batch: Batch) -> Tensor:
        weight: Tensor = OneGradient.apply(self.trainer.params["actor.0.weight"])
        return per_run_sum(weight**2)


class CompiledAndMixed(Base):
    def actor_penalty(self, batch: Batch) -> Tensor:
        weight: Tensor = OneGradient.apply(self.trainer.params["actor.0.weight"])
        return (weight**2).sum() + super().actor_penalty(batch)


class MovesStatistics(Base):
    def critic_penalty(self, batch: Batch) -> Tensor:
        self.trainer.value["mean"] += 1
        return super().critic_penalty(batch)


class MovesBatch(Base):
    def actor_penalty(self, batch: Batch) -> Tensor:
        batch.reward.mul_(2)
        return super().actor_penalty(batch)


class FlatBatch(Base):
    def sample_batch(self, size: int) -> Batch:
        from dataclasses import replace

        batch = super().sample_batch(size)
        return replace(batch, weight=batch.weight[0])


class Replaced(Base):
    def adjust_gradients(self, grads: dict[str, Tensor]) -> None:
        grads["log_alpha"] = grads["log_alpha"].sum(0)


class Removed(Base):
    def adjust_gradients(self, grads: dict[str, Tensor]) -> None:
        del grads["log_alpha"]


class Added(Base):
    def adjust_gradients(self, grads: dict[str, Tensor]) -> None:
        grads["extra"] = grads["log_alpha"]


class OtherKind(Base):
    def adjust_gradients(self, grads: dict[str, Tensor]) -> None:
        self.trainer.streams.normal("z", (3,))

    def after_update(self, batch: Batch, targets: Tensor) -> None:
        self.trainer.streams.uniform("z", (3,))


class Mixed(Base):
    def critic_penalty(self, batch: Batch) -> Tensor:
        weights = self.trainer.params["critic.0.weight"]
        self.old = getattr(self, "old", weights.detach().clone())  # no gradient in the first update
        return super().critic_penalty(batch) + ((weights - self.old) ** 2).sum()


def test_a_penalty_whose_graph_gives_one_gradient_is_checked_like_others(
    make_trainer: Callable[..., Trainer],
) -> None:
    """The update uses that one."""
    checked, plain = (
        make_trainer([0, 1], method=lambda trainer: Compiled(MethodConfig(), trainer))
        for _ in range(2)
    )
    checked.checked(checked.update)
    plain.update()
    for name, x in plain.state().items():
        assert torch.equal(checked.state()[name], x), name
    mixed = make_trainer([0, 1], method=lambda trainer: CompiledAndMixed(MethodConfig(), trainer))
    with pytest.raises(UserError, match=r"of a run depends on actor\.0\.weight of other runs"):
        mixed.checked(mixed.update)


def test_the_second_update_finds_a_penalty_that_mixes_runs(
    make_trainer: Callable[..., Trainer],
) -> None:
    def mixed(trainer: Trainer) -> Mixed:
        return Mixed(MethodConfig(), trainer)

    with pytest.raises(
        UserError, match=r"of a run depends on critic\.0\.weight of other runs; axis"
    ):
        make_trainer([0, 1], method=mixed).train(2)
    make_trainer([0], method=mixed).train(2)  # right for a single one


@pytest.mark.parametrize("seeds", [[0], [0, 1]])
@pytest.mark.parametrize(
    ("method", "words"),
    [
        (Scalar, r"Scalar.actor_penalty returned shape \[\], expected \[\d\]; .* per_run_sum"),
        (Rows, r"Rows.critic_penalty returned shape \[\d, 16\]"),
        (Number, "returned float, expected a tensor"),
        (NotFinite, "NotFinite.critic_penalty returned nan, expected a finite number"),
        (Twice, "random numbers 'z' are drawn twice in one hook"),
        (MovesStatistics, r"critic_penalty changed trainer.value\['mean'\] in place; .* after_upd"),
        (MovesBatch, r"MovesBatch.actor_penalty changed batch.\w+ in place"),
        (FlatBatch, "sample_batch returned weight of shape"),
        (Replaced, "adjust_gradients changed the shape of 'log_alpha'; change gradients in place"),
        (Removed, "adjust_gradients removed 'log_alpha'; change gradients in place"),
        (Added, "adjust_gradients added 'extra'"),
        (OtherKind, r"random numbers 'z' were normal \[3\], now uniform \[3\]; give each draw"),
        (Noise, "adjust_gradients draws from the global generator of torch; draw with self.trai"),
        (NumpyNoise, "after_update draws from the global generator of numpy.random"),
        (PythonNoise, "at_interval draws from the global generator of random"),
    ],
)
def test_the_first_update_finds(
    method: type[Base], words: str, seeds: list[int], make_trainer: Callable[..., Trainer]
) -> None:
    trainer = make_trainer(seeds, method=lambda trainer: method(MethodConfig(), trainer))
    with pytest.raises(UserError, match=words):
        trainer.train(1)


def test_a_run_that_is_not_finite_does_not_end_the_others(
    make_trainer: Callable[..., Trainer],
) -> None:
    class Squared(Base):
        def actor_penalty(self, batch: Batch) -> Tensor:
            return per_run_sum(self.trainer.params["actor.0.weight"] ** 2)

    trainer = make_trainer([0, 1], method=lambda trainer: Squared(MethodConfig(), trainer))
    with torch.no_grad():
        trainer.params["actor.0.weight"][0] = float("nan")
    trainer.train(2)
    assert trainer.updates == 2


@pytest.mark.parametrize("actor_every", [1, 2])
def test_two_hooks_may_share_numbers(
    actor_every: int, make_trainer: Callable[..., Trainer]
) -> None:
    """ClonEx compares actor and critic on the same old states; `actor_every` repeats hooks."""

    class Shared(Base):
        def actor_penalty(self, batch: Batch) -> Tensor:
            return per_run_sum(self.trainer.streams.normal("z", (3,)))

        def critic_penalty(self, batch: Batch) -> Tensor:
            return -self.actor_penalty(batch)

    sac = SACConfig(batch_size=16, actor_every=actor_every)
    trainer = make_trainer([0], sac=sac, method=lambda trainer: Shared(MethodConfig(), trainer))
    trainer.train(2)
    assert trainer.updates == 2


class Drawn(Method[MethodConfig]):
    """Draws in every third update's wake."""

    interval = 3

    def on_task_start(self, position: int) -> None:
        self.seen: list[list[float]] = []

    def at_interval(self) -> None:
        self.seen.append(self.trainer.streams.uniform("mine", (2,)).flatten().tolist())


class Captured:
    """What a captured update does to the streams: its own numbers advance, Python's stay."""

    def __init__(self, trainer: Trainer) -> None:
        self.trainer = trainer

    def replay(self, most: int) -> int:
        streams, first = self.trainer.streams, self.trainer.updates
        for update in range(first, first + most):
            streams.seek(update)
            self.trainer.update()
        streams.seek(first)
        return most


def test_draws_at_an_interval_are_the_same_after_captured_updates(
    make_trainer: Callable[..., Trainer],
) -> None:
    plain, captured = (
        make_trainer([0, 1], method=lambda trainer: Drawn(MethodConfig(), trainer))
        for _ in range(2)
    )
    captured.captured = Captured(captured)  # type: ignore[assignment]
    for trainer in (plain, captured):
        trainer.method.on_task_start(0)  # type: ignore[attr-defined]
        trainer.train(54)  # beyond a block of numbers
    assert plain.method.seen == captured.method.seen  # type: ignore[attr-defined]
    assert len({*map(tuple, plain.method.seen)}) == 18  # type: ignore[attr-defined]


def test_task_boundaries_are_checked(make_trainer: Callable[..., Trainer]) -> None:
    class Drawing(Base):
        def on_task_end(self, position: int) -> None:
            torch.rand(1)

    method = Drawing(MethodConfig(), make_trainer([0]))
    with pytest.raises(UserError, match="on_task_end draws"):
        method.end_task(0)


@pytest.mark.parametrize("hook", ["policy_weights", "evaluated_weights"])
def test_weights_that_are_evaluated_are_checked(
    hook: str, make_trainer: Callable[..., Trainer]
) -> None:
    """By default these are the weights that act."""

    class Own(Method[MethodConfig]):
        def policy_weights(self, position: int) -> Any:
            return {name: x + torch.rand(()) for name, x in self.trainer.actor_params.items()}

    with pytest.raises(UserError, match=f"{hook} draws from the global generator of torch"):
        ask(Own(MethodConfig(), make_trainer([0])), hook, 0)


def test_good_hooks_are_left_in_place_after_the_first_update(
    make_trainer: Callable[..., Trainer],
) -> None:
    class Good(Base):
        def actor_penalty(self, batch: Batch) -> Tensor:
            noise = self.trainer.streams.normal("mine", (3,))
            return per_run_sum(noise * self.trainer.params["actor.0.bias"][:, :3])

    trainer = make_trainer([0, 1], method=lambda trainer: Good(MethodConfig(), trainer))
    method = trainer.method
    trainer.train(3)
    assert trainer.method is method


def test_a_generator_of_ones_own_is_no_global_one() -> None:
    with no_global_randomness(object(), "hook"):
        torch.rand(2, generator=torch.Generator().manual_seed(0))
        np.random.default_rng(0).random()
        random.Random(0).random()
