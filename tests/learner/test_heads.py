"""How rows reach their heads, and that heads do not touch each other."""

from typing import Any

import pytest
import torch

from cwbench.learner.heads import Heads, TaskIndex
from cwbench.learner.trainer import Trainer
from cwbench.spec.config import NetworkConfig


def test_unshared_networks_do_not_touch_each_other(make_trainer: Any) -> None:
    network = NetworkConfig(width=16, actor_head_layers=4, critic_head_layers=4)
    trainer: Trainer = make_trainer([0], position=1, network=network)
    assert trainer.trunk_names("actor") == trainer.trunk_names("critic") == []
    before = {name: x.clone() for name, x in trainer.state().items()}
    trainer.train(3)
    for name, p in trainer.params.items():
        old, new = (x.movedim(trainer.task_axis(name), 1) for x in (before[name], p))
        assert torch.equal(old[:, 0], new[:, 0]), name
        assert not torch.equal(old[:, 1], new[:, 1]), name
    x = torch.randn(1, 5, 16, generator=torch.Generator().manual_seed(0))
    values = [
        trainer.critic(trainer.params, x, TaskIndex.single(task, 1, 5, x.device)) for task in (0, 1)
    ]
    assert not torch.allclose(
        values[0], values[1]
    )  # the second task's network has weights of its own


@pytest.mark.parametrize(
    ("sizes", "products"),
    [((4, 4), 1), ((2, 2, 4), 2), ((1, 1, 1, 1, 4), 2), ((3, 2, 4), 3), ((4, 4, 2), 3)],
)
def test_heads_share_products_and_every_row_has_its_own_head(
    sizes: tuple[int, ...], products: int
) -> None:
    """A batch that is half of the current task's takes two, however many tasks there were."""
    runs, passes, count = 3, 2, len(sizes)
    blocks = [
        TaskIndex.single(task, runs, rows, torch.device("cpu")) for task, rows in enumerate(sizes)
    ]
    heads = Heads(TaskIndex.join(blocks), count, passes)
    x = torch.arange(runs * passes * sum(sizes)).view(runs, -1, 1)
    assigned = heads.assign(x)
    assert len(assigned) == products
    every = torch.arange(count).repeat(runs)[:, None, None]  # each head adds its task / 10
    marked = [part + (every if task is None else task) / 10 for task, part in assigned]
    expected = x + heads.tasks.index.repeat(1, passes).unsqueeze(-1) / 10
    assert torch.equal(heads.choose(marked, runs), expected)
