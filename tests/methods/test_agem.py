"""A-GEM: known projections, and a memory that knows its tasks."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from cwbench.learner.runaxis import per_run_sum
from cwbench.learner.trainer import Trainer
from cwbench.methods.agem import AGEM, AGEMConfig, project

Make = Callable[..., Trainer]


def start(make_trainer: Make, position: int, before: Any = None, **options: Any) -> Any:
    """A trainer whose transitions of this task have its position as their reward."""
    trainer = make_trainer([0, 1], position=position)
    trainer.method = AGEM(AGEMConfig(**options), trainer)
    if before is not None:
        trainer.start(before.state())
        trainer.method.load_state(before.method.state())
    trainer.replay.rows[:, 16] = position
    trainer.method.on_task_start(position)
    return trainer


def test_projection_in_the_plane() -> None:
    # Against the memory: the part along it goes. With it, or without a memory: nothing changes.
    grads = {"x": torch.tensor([[1.0, -2.0], [1.0, 2.0], [3.0, -4.0], [2.0, 0.0]])}
    reference = {"x": torch.tensor([[0.0, 3.0], [0.0, 3.0], [0.0, 0.0], [-1.0, 1.0]])}
    project(grads, reference, ["x"])
    assert grads["x"].tolist() == [[1, 0], [1, 2], [3, -4], [1, 1]]


def test_names_projected_together_are_one_vector() -> None:
    def example() -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
        return (
            {"a": torch.tensor([[-1.0, 0.0]]), "b": torch.tensor([[[2.0], [0.0]]])},
            {"a": torch.tensor([[1.0, 0.0]]), "b": torch.tensor([[[2.0], [0.0]]])},
        )

    together, reference = example()
    project(together, reference, ["a", "b"])  # -1 + 4 > 0
    assert together["a"].tolist() == [[-1, 0]]
    apart, _ = example()
    project(apart, reference, ["a"])
    project(apart, reference, ["b"])
    assert apart["a"].tolist() == [[0, 0]]
    assert apart["b"].tolist() == [[[2], [0]]]


@pytest.mark.parametrize("projection", ["separate", "joint"])
def test_no_step_goes_against_the_memory(make_trainer: Make, projection: str) -> None:
    first = start(make_trainer, 0, projection=projection)
    first.method.on_task_end(0)
    trainer = start(make_trainer, 1, first, projection=projection)
    agem = trainer.method
    reference = trainer.sac_gradients(agem.remember(), "memory-").grads
    generator = torch.Generator().manual_seed(0)
    grads = {n: torch.randn(g.shape, generator=generator) * 0.01 - g for n, g in reference.items()}
    alpha = grads["log_alpha"].clone()
    groups = [trainer.group("actor"), trainer.group("critic")]
    groups = groups if projection == "separate" else [groups[0] + groups[1]]

    def dots() -> torch.Tensor:  # [groups, R]
        return torch.stack(
            [
                sum(
                    (per_run_sum((grads[n] * reference[n]).double()) for n in names), torch.zeros(2)
                )
                for names in groups
            ]
        )

    assert (dots() < 0).all()
    size = dots().abs().min()
    expected = {name: grad.clone() for name, grad in grads.items()}
    for names in groups:
        project(expected, reference, names)
    agem.adjust_gradients(grads)
    assert all(torch.equal(grad, expected[name]) for name, grad in grads.items())
    assert (dots().abs() < 1e-4 * size).all()
    assert torch.equal(grads["log_alpha"], alpha)


def test_memory_holds_equal_parts_with_their_tasks(make_trainer: Make) -> None:
    first = start(make_trainer, 0, memory_size=50, memory_batch=11)
    first.method.on_task_end(0)
    second = start(make_trainer, 1, first, memory_size=50, memory_batch=11)
    second.method.on_task_end(1)
    third = start(make_trainer, 2, second, memory_size=50, memory_batch=11)
    assert third.method.memory.shape == (2, 100, 29)
    batch = third.method.remember()
    assert batch.tasks.blocks == ((0, 6), (1, 6))  # eleven are wanted: six of each
    assert torch.equal(batch.reward, batch.tasks.index.float())
    for run in range(2):  # each run remembers its own
        own = {tuple(row) for row in first.replay.stored(0)[run].tolist()}
        assert {tuple(row) for row in third.method.memory[run, :50].tolist()} <= own
        assert set(batch.obs[run, :6, 0].tolist()) <= {row[0] for row in own}
    seen = []
    for update in range(3):
        third.streams.seek(update)
        seen.append(third.method.remember().rows)
    assert not torch.equal(seen[0], seen[1]) and not torch.equal(seen[1], seen[2])


def test_memory_is_no_larger_than_what_was_collected(make_trainer: Make) -> None:
    trainer = start(make_trainer, 0)
    trainer.method.on_task_end(0)
    assert trainer.method.memory.shape[1] == 200


def test_first_task_is_plain_sac(make_trainer: Make) -> None:
    plain, agem = make_trainer([0, 1]), start(make_trainer, 0)
    plain.replay.rows[:, 16] = 0
    plain.train(5)
    agem.train(5)
    assert all(torch.equal(plain.params[name], agem.params[name]) for name in plain.params)


def test_old_alphas_stay_and_the_memory_is_not_recorded(make_trainer: Make) -> None:
    first = start(make_trainer, 0)
    first.train(3)
    first.method.on_task_end(0)
    trainer = start(make_trainer, 1, first)
    before = trainer.params["log_alpha"][:, 0].detach().clone()
    trainer.train(5)
    assert torch.equal(trainer.params["log_alpha"][:, 0], before)
    assert trainer.statistics.count == 5  # the memory's losses are not recorded
