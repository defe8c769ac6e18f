"""What methods that renew units share: activity, intervals, new weights."""

from collections.abc import Callable

import torch

from cwbench.learner import TaskIndex, Trainer, activity
from cwbench.methods._plasticity import renew
from cwbench.methods.redo import ReDo, ReDoConfig

MakeTrainer = Callable[..., Trainer]


def test_renewing_reaches_every_head_and_the_targets(make_trainer: MakeTrainer) -> None:
    trainer = make_trainer([0], position=1)
    units = torch.zeros(1, 2, 16, dtype=torch.bool)
    units[0, 1, 3] = True  # of the second critic only
    fresh = torch.full((1, 2, 16, 1), 7.0)
    renew(trainer, "critic", 3, units, fresh)
    for table in (trainer.params, trainer.target):
        assert table["critic.3.weight"].detach()[0, 1, :, 3].eq(7).all()
        assert table["critic.4.weight"].detach()[0, 1, :, 3].eq(0).all()  # both heads
        assert table["critic.4.weight"].detach()[0, 0].ne(0).all()


def test_a_renewed_unit_of_the_first_layer_starts_as_a_new_one(make_trainer: MakeTrainer) -> None:
    """Its bias and LayerNorm, too, in critics and targets; nothing else of them changes."""
    trainer = make_trainer([0])
    units = torch.zeros(1, 2, 16, dtype=torch.bool)
    units[0, 1, 3] = True
    starts = {"critic.0.bias": 0, "critic.norm.scale": 1, "critic.norm.shift": 0}
    for table in (trainer.params, trainer.target, trainer.optimizer.mean, trainer.optimizer.square):
        for name in starts:
            table[name].detach().fill_(5)
    renew(trainer, "critic", 0, units, torch.full((1, 2, 16, 1), 7.0))
    for name, start in starts.items():
        for table in (trainer.params, trainer.target):
            assert torch.equal(table[name].detach(), torch.where(units, float(start), 5.0)), name
        for moments in (trainer.optimizer.mean, trainer.optimizer.square):
            assert torch.equal(moments[name], torch.where(units, 0.0, 5.0)), name


def test_the_interval_is_kept_across_calls(make_trainer: MakeTrainer) -> None:
    trainer = make_trainer([0])
    method = ReDo(ReDoConfig(every=4), trainer)
    seen: list[int] = []
    method.at_interval = lambda: seen.append(trainer.updates)  # type: ignore[method-assign]
    trainer.method = method
    for updates in (3, 3, 7):
        trainer.train(updates)
    assert seen == [4, 8, 12]


def test_activity_is_the_mean_size_of_what_the_next_layer_gets(make_trainer: MakeTrainer) -> None:
    assert activity(torch.tensor([[[1.0, 0.0], [-3.0, 0.0]]])).tolist() == [[2, 0]]
    trainer = make_trainer([0, 1])
    batch = trainer.replay.sample_once(8, "test")
    hidden = trainer.hidden("critic", batch)
    assert [tuple(activity(layer).shape) for layer in hidden] == [(2, 2, 16)] * 4
    tasks = TaskIndex.single(0, 2, 8, trainer.device)
    weight = trainer.params["critic.4.weight"][:, :, 0], trainer.params["critic.4.bias"][:, :, 0]
    q = (hidden[-1] @ weight[0] + weight[1].unsqueeze(-2)).squeeze(-1)
    torch.testing.assert_close(q, trainer.q(trainer.params, batch.obs, batch.action, tasks))
