"""ClonEx: known values of the cloning terms, and how old heads explore."""

from collections.abc import Callable

import pytest
import torch

from cwbench.learner.trainer import Trainer
from cwbench.methods import METHODS
from cwbench.methods.clonex import ClonEx, ClonExConfig
from cwbench.spec.options import resolve
from cwbench.spec.schedule import Exploration

Make = Callable[..., Trainer]


def second_task(make_trainer: Make, name: str = "clonex", **options: object) -> ClonEx:
    """A method in its second task whose networks still are what they were at the first's end."""
    entry = METHODS[name]
    config = resolve(ClonExConfig, {"memory_size": 64, **options}, entry.options)
    first = ClonEx(config, make_trainer([0, 1]))
    first.on_task_end(0)
    method = ClonEx(config, make_trainer([0, 1], position=1))
    method.load_state(first.state())
    return method


def test_old_behaviour_costs_nothing(make_trainer: Make) -> None:
    method = second_task(make_trainer, critic_coef=1.0)
    batch = method.sample_batch(16)
    assert method.actor_penalty(batch).tolist() == pytest.approx([0, 0], abs=1e-4)
    assert method.critic_penalty(batch).tolist() == pytest.approx([0, 0], abs=1e-6)


@pytest.mark.parametrize(("name", "reduced"), [("clonex", 4), ("clonex-rr", 1)])
def test_penalty_of_a_shifted_mean(make_trainer: Make, name: str, reduced: int) -> None:
    method = second_task(make_trainer, name)
    trainer = method.trainer
    with torch.no_grad():  # std 1 on both sides, then means apart by 0.3 in all four dimensions
        method.states["policy"][..., 4:] = 0
        trainer.params["actor.4.weight"][:, 0, :, 4:] = 0
        trainer.params["actor.4.bias"][:, 0, 4:] = 0
        trainer.params["actor.4.bias"][1, 0, :4] += 0.3
    # KL of unit Gaussians is half the squared distance: 0.045 per dimension.
    expected = [0, 100 * reduced * 0.045]
    assert method.actor_penalty(method.sample_batch(16)).tolist() == pytest.approx(
        expected, abs=1e-3
    )


def test_penalty_of_a_wider_policy_depends_on_the_direction(make_trainer: Make) -> None:
    # Old std 1, new std 2, equal means: ln 2 + 1/8 - 1/2, or -ln 2 + 2 - 1/2 the other way round.
    for direction, kl in (("old_new", 0.318147), ("new_old", 0.806853)):
        method = second_task(make_trainer, kl_direction=direction, coef=1.0)
        with torch.no_grad():
            method.states["policy"][..., 4:] = 0
            method.trainer.params["actor.4.weight"][:, 0, :, 4:] = 0
            method.trainer.params["actor.4.bias"][:, 0, 4:] = torch.tensor(2.0).log()
        penalty = method.actor_penalty(method.sample_batch(16))
        assert penalty.tolist() == pytest.approx([4 * kl] * 2, rel=1e-4)


def test_values_are_cloned_when_asked_for(make_trainer: Make) -> None:
    method = second_task(make_trainer, critic_coef=2.0)
    with torch.no_grad():
        method.trainer.params["critic.4.bias"][:, 1, 0] += 0.5  # the second twin only
    assert method.critic_penalty(method.sample_batch(16)).tolist() == pytest.approx(
        [0.5] * 2, rel=1e-4
    )


def test_first_task_is_plain(make_trainer: Make) -> None:
    method = ClonEx(ClonExConfig(), make_trainer([0]))
    grads = {"actor.0.weight": torch.ones(1, 12, 16)}
    method.adjust_gradients(grads)
    assert method.actor_penalty(method.sample_batch(4)).tolist() == [0]
    assert grads["actor.0.weight"].eq(1).all()
    assert method.exploration(0) == Exploration(10_001)


def test_halving_touches_the_actor_alone(make_trainer: Make) -> None:
    for name, factor in (("clonex", 0.5), ("clonex-rr", 1.0)):
        method = second_task(make_trainer, name)
        grads = {key: torch.ones_like(p) for key, p in method.trainer.params.items()}
        method.adjust_gradients(grads)
        values = {key.split(".")[0]: x.unique().item() for key, x in grads.items()}
        assert values == {"actor": factor, "critic": 1.0, "log_alpha": 1.0}


def test_old_heads_explore(make_trainer: Make) -> None:
    trainer = make_trainer([0], position=2)
    assert ClonEx(ClonExConfig(), trainer).exploration(2) == Exploration(10_001, heads=(0, 1))
    copying = ClonExConfig(exploration="copy_best_head")
    assert ClonEx(copying, trainer).exploration(2) == Exploration(0)


def test_copying_takes_the_best_actor_head_only(make_trainer: Make) -> None:
    trainer = make_trainer([0, 1], position=2)
    trainer.try_heads = lambda position, heads, episodes: torch.tensor([[0.0, 1.0], [1.0, 0.0]])
    before = {name: x.clone() for name, x in trainer.state().items()}
    ClonEx(ClonExConfig(exploration="copy_best_head"), trainer).on_task_start(2)
    changed = {name for name, x in trainer.state().items() if not torch.equal(x, before[name])}
    assert changed == {"actor.4.weight"}  # biases of new heads are all zero
    for run, best in enumerate((1, 0)):
        copied = trainer.params["actor.4.weight"][run, 2]
        assert torch.equal(copied, before["actor.4.weight"][run, best])
