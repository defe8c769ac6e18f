"""Networks that share nothing do not touch each other."""

from typing import Any

import torch

from cwbench.learner.heads import TaskIndex
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
