"""L2: a pull of known size, on the shared weights of the actor only."""

from collections.abc import Callable

import torch
from torch.testing import assert_close

from cwbench.learner.trainer import Trainer
from cwbench.methods.l2 import L2, L2Config

Make = Callable[..., Trainer]


def test_penalty_counts_finished_tasks_and_shared_weights_only(make_trainer: Make) -> None:
    trainer = make_trainer([0, 1])
    trainer.method = l2 = L2(L2Config(), trainer)
    batch = trainer.replay.sample(16)
    names = trainer.trunk_names("actor")
    count = sum(trainer.params[name][0].numel() for name in names)
    assert not l2.actor_penalty(batch).any()
    for tasks_done in (1, 2):
        l2.on_task_end(tasks_done - 1)
        with torch.no_grad():
            for name in trainer.params:  # run 1 moves, heads and critics too
                trainer.params[name][1] += 0.01
        # 1e5 per task, weight and squared distance
        expected = torch.tensor([0.0, tasks_done * 1e5 * count * 0.01**2])
        assert_close(l2.actor_penalty(batch).detach(), expected, rtol=1e-4, atol=0)
        assert not l2.critic_penalty(batch).any()


def test_a_strong_pull_keeps_shared_weights_and_leaves_heads_free(make_trainer: Make) -> None:
    first = make_trainer([0])
    first.method = L2(L2Config(), first)
    first.method.on_task_end(0)
    moved = {}
    for coef in (0.0, 1e5):
        trainer = make_trainer([0], position=1)
        trainer.start(first.state())
        trainer.method = L2(L2Config(coef=coef), trainer)
        trainer.method.load_state(first.method.state())
        before = {name: x.clone() for name, x in trainer.state().items()}
        trainer.train(100)
        after = trainer.state()
        drift = {name: (after[name] - before[name]).abs() for name in trainer.params}
        shared = [drift[name].mean() for name in trainer.trunk_names("actor")]
        moved[coef] = float(torch.stack(shared).mean())
        assert drift["actor.4.weight"][:, 1].mean() > 1e-3
    assert moved[1e5] < 0.2 * moved[0.0]
