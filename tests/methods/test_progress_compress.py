"""Progress & Compress: who learns when, and what the pull on the knowledge base does."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.testing import assert_close

from cwbench.learner.heads import TaskIndex
from cwbench.learner.trainer import Trainer
from cwbench.methods._cloning import mean_kl
from cwbench.methods.progress_compress import ProgressCompress, ProgressCompressConfig
from cwbench.spec.config import NetworkConfig

Make = Callable[..., Trainer]
CONFIG = ProgressCompressConfig(distill_updates=50, importance_samples=20)
WIDE = NetworkConfig(width=16, layers=2)


def trained(
    make: Make, config: ProgressCompressConfig = CONFIG, *, after: Trainer | None = None
) -> tuple[Trainer, ProgressCompress]:
    """At the end of the progress phase of a task, the first or the one after another's."""
    trainer = make(
        [0, 1],
        position=0 if after is None else after.position + 1,
        network=WIDE,
        method=lambda trainer: ProgressCompress(config, trainer),
        inherited=None if after is None else after.state(),
    )
    method = trainer.method
    assert isinstance(method, ProgressCompress)
    if after is not None:
        old: Any = after.method
        method.load_state(old.state())
    method.on_task_start(trainer.position)
    trainer.train(5)
    return trainer, method


def copied(table: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: x.clone() for name, x in table.items()}


def divergence(trainer: Trainer, method: ProgressCompress) -> Tensor:
    """KL(active || knowledge base) on all states of the task: [R]."""
    obs = trainer.replay.stored(trainer.position)[..., :12]
    tasks = TaskIndex.single(trainer.position, 2, obs.shape[1], trainer.device)
    active = torch.cat(trainer.policy(trainer.actor_params, obs, tasks), -1)
    return mean_kl(
        trainer.policy, method.base, obs, tasks, active, direction="old_new", reduce="sum"
    )


def test_the_knowledge_base_learns_in_the_compress_phase_only(make_trainer: Make) -> None:
    trainer, method = trained(make_trainer)
    initial = trainer.initial_state()
    assert all(torch.equal(x, initial[name]) for name, x in method.base.items())
    assert not torch.equal(trainer.actor_params["actor.1.weight"], initial["actor.1.weight"])
    active, before = copied(trainer.actor_params), divergence(trainer, method)
    method.on_task_end(0)
    assert all(torch.equal(x, active[name]) for name, x in trainer.actor_params.items())
    assert (divergence(trainer, method) < 0.5 * before).all()


def test_the_knowledge_base_does_not_move_in_a_later_progress_phase(make_trainer: Make) -> None:
    first, old = trained(make_trainer)
    old.on_task_end(0)
    end = copied(old.base)
    _, method = trained(make_trainer, after=first)
    for name, x in method.base.items():
        assert torch.equal(x if x.shape == end[name].shape else x[:, :1], end[name])


def test_the_active_actor_acts_for_its_task_until_the_compress_phase(make_trainer: Make) -> None:
    trainer, method = trained(make_trainer)
    active = trainer.actor_params["actor.0.weight"]
    assert torch.equal(method.policy_weights(0)["actor.0.weight"], active)
    method.on_task_end(0)
    assert method.policy_weights(0) is method.base
    later, method = trained(make_trainer, after=trainer)
    assert method.policy_weights(0) is method.base
    now = later.actor_params["actor.0.weight"]
    assert torch.equal(method.policy_weights(1)["actor.0.weight"], now)


def test_without_updates_nothing_is_compressed(make_trainer: Make) -> None:
    _, method = trained(make_trainer, replace(CONFIG, distill_updates=0))
    before = copied(method.base)
    method.on_task_end(0)
    assert all(torch.equal(x, before[name]) for name, x in method.base.items())


def test_importances_decay_and_add_up(make_trainer: Make) -> None:
    config = replace(CONFIG, decay=0.5, distill_updates=2)
    first, old = trained(make_trainer, config)
    old.on_task_end(0)
    earlier = copied(old.importance)
    _, method = trained(make_trainer, config, after=first)
    method.on_task_end(1)
    new = method._fisher()
    for name, x in method.importance.items():
        assert_close(x, 0.5 * earlier[name] + new[name])


def test_a_strong_pull_holds_shared_weights_while_the_head_learns(make_trainer: Make) -> None:
    moved = {}
    for coef in (1.0, 1e6):
        config = replace(CONFIG, coef=coef)
        first, old = trained(make_trainer, config)
        old.on_task_end(0)
        _, method = trained(make_trainer, config, after=first)
        before = copied(method.base)
        method.on_task_end(1)
        moved[coef] = {name: (x - before[name]).norm() for name, x in method.base.items()}
    assert moved[1e6]["actor.1.weight"] < 0.3 * moved[1.0]["actor.1.weight"]
    assert moved[1e6]["actor.2.weight"] > 0.3 * moved[1.0]["actor.2.weight"]  # the head


def test_half_the_pull_estimates_the_divergence_from_the_old_policy(make_trainer: Make) -> None:
    """Known answer: KL(old || old + d) = d' F d / 2 to second order; here one weight moves."""
    trainer, method = trained(make_trainer, replace(CONFIG, decay=1.0, importance_samples=200))
    method.on_task_end(0)
    base, name = method.base, "actor.1.bias"
    obs = trainer.replay.sample_once(200, "importance").obs
    tasks = TaskIndex.single(0, 2, 200, trainer.device)
    old = torch.cat(trainer.policy(base, obs, tasks), -1)
    moved = base | {name: base[name].clone()}
    moved[name][:, 3] += 0.01
    kl = mean_kl(trainer.policy, moved, obs, tasks, old, direction="old_new", reduce="sum")
    assert_close(method._pull(moved, base), kl, rtol=0.05, atol=1e-7)
    method.assign([replace(CONFIG, decay=0.5)] * 2)
    assert_close(method._pull(moved, base), kl / 2, rtol=0.05, atol=1e-7)


def test_importances_are_the_knowledge_bases_own(make_trainer: Make) -> None:
    trainer, method = trained(make_trainer)
    before = method._fisher()
    for name in trainer.group("actor"):  # the active actor is another
        trainer.params[name].detach().mul_(2)
    assert all(torch.equal(x, before[name]) for name, x in method._fisher().items())
    method.base = {name: 2 * x for name, x in method.base.items()}
    assert not any(torch.equal(x, before[name]) for name, x in method._fisher().items())
