"""Experience replay with a budget: what is kept, and how it is mixed in."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from cwbench.learner import Trainer
from cwbench.methods.er import ER, ERConfig, smallest

MakeTrainer = Callable[..., Trainer]


def in_task(make_trainer: MakeTrainer, position: int, **options: Any) -> ER:
    """A method that has gone through the ends of earlier tasks; rows are marked by their task."""
    trainer = make_trainer([0, 1], position=position, rows=60)
    method = ER(ERConfig(**options), trainer)
    method.on_task_start(0)
    for task in range(position):
        earlier = make_trainer([0, 1], position=task, rows=60)
        earlier.replay.rows[:, 16] = task  # the reward
        method.trainer = earlier
        method.on_task_end(task)
    method.trainer = trainer
    trainer.method = method
    return method


def test_a_large_budget_keeps_everything(make_trainer: MakeTrainer) -> None:
    for share in ("balanced", "uniform"):
        method = in_task(make_trainer, 2, memory=10**6, share=share)
        assert method.memory.shape[:2] == (2, 120)
        assert torch.bincount(method.task[1]).tolist() == [60, 60]


def test_balanced_shares(make_trainer: MakeTrainer) -> None:
    method = in_task(make_trainer, 3, memory=100)
    assert torch.bincount(method.task[0]).tolist() == [33, 33, 33]
    assert torch.equal(method.memory[..., 16], method.task.float())  # rows and tasks agree


def test_what_is_dropped_does_not_come_back(make_trainer: MakeTrainer) -> None:
    kept = []
    for position in (1, 2, 3):
        method = in_task(make_trainer, position, memory=100)
        rows = method.memory[0][method.task[0] == 0]
        kept.append({tuple(row.tolist()) for row in rows})
    assert kept[0] > kept[1] > kept[2]


def test_every_transition_is_kept_with_the_same_probability() -> None:
    """Chi-square over 60 transitions of three tasks that came one after another, 4000 times."""
    runs, length, budget = 4000, 20, 15
    generator = torch.Generator().manual_seed(0)
    keys = task = names = torch.zeros(runs, 0, dtype=torch.long)
    for position in range(3):
        new = torch.randint(2**24, (runs, length), generator=generator)
        own = torch.arange(length).expand(runs, -1) + position * length
        keys, names = torch.cat([keys, new], 1), torch.cat([names, own], 1)
        task = torch.cat([task, torch.full_like(new, position)], 1)
        rows = smallest(keys, task, budget, "uniform")
        keys, task, names = (x.gather(1, rows) for x in (keys, task, names))
    counts = torch.bincount(names.flatten(), minlength=60).double()
    expected = runs * budget / 60
    # Sampling without replacement: the variance of a count is smaller by 1 - 15/60.
    statistic = ((counts - expected) ** 2).sum() / expected / (1 - budget / 60)
    assert statistic < 100  # 59 degrees of freedom: exceeded with probability 7e-4


@pytest.mark.parametrize("share", ["balanced", "uniform"])
def test_a_batch_is_half_memory(make_trainer: MakeTrainer, share: str) -> None:
    method = in_task(make_trainer, 2, memory=40, memory_batch=8, share=share, old_weight=0.5)
    batch = method.sample_batch(16)
    assert batch.obs.shape[:2] == (2, 24)
    assert torch.equal(batch.reward[:, :8], batch.tasks.index[:, :8].float())
    assert batch.tasks.index[:, 8:].eq(2).all()
    torch.testing.assert_close(batch.weight[:, :8].sum(1), torch.full((2,), 0.5))
    torch.testing.assert_close(batch.weight[:, 8:].sum(1), torch.ones(2))
    if share == "balanced":
        assert batch.tasks.index[0, :8].tolist() == [0] * 4 + [1] * 4


def test_without_weight_gradients_are_those_of_the_new_data(make_trainer: MakeTrainer) -> None:
    method = in_task(make_trainer, 2, memory=40, old_weight=0.0)
    trainer = method.trainer
    mixed, new = method.sample_batch(16), trainer.replay.sample(16)
    noise = trainer.noise("test", mixed)
    trainer.noise = lambda name, batch: noise[:, -batch.reward.shape[1] :]  # type: ignore[method-assign]
    one, other = (trainer.sac_gradients(batch).grads for batch in (mixed, new))
    for name in other:
        torch.testing.assert_close(one[name], other[name], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("old_temperatures", ["frozen", "tuned"])
def test_old_temperatures(make_trainer: MakeTrainer, old_temperatures: str) -> None:
    method = in_task(make_trainer, 2, memory=40, old_temperatures=old_temperatures)
    method.trainer.train(2)
    moved = method.trainer.params["log_alpha"].detach() != 1
    old = old_temperatures == "tuned"
    assert moved.tolist() == [[old, old, True]] * 2
