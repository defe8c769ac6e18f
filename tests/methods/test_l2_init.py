"""L2-init: the penalty's value and gradient, and its fixed point."""

from collections.abc import Callable

import pytest
import torch

from cwbench.learner import Trainer
from cwbench.methods.l2_init import L2Init, L2InitConfig

MakeTrainer = Callable[..., Trainer]


def moved(
    make_trainer: MakeTrainer, distance: float, position: int = 0, **options: object
) -> L2Init:
    trainer = make_trainer([0, 1], position=position)
    method = L2Init(L2InitConfig(**options), trainer)  # type: ignore[arg-type]
    with torch.no_grad():
        for name in method.initial:
            trainer.params[name].add_(distance)
    trainer.method = method
    return method


def test_nothing_is_pulled_at_the_start(make_trainer: MakeTrainer) -> None:
    method = moved(make_trainer, 0.0)
    batch = method.sample_batch(4)
    assert method.actor_penalty(batch).tolist() == [0, 0]
    assert method.critic_penalty(batch).tolist() == [0, 0]
    assert not [name for name in method.initial if ".norm." in name]


@pytest.mark.parametrize("reduce", ["sum", "mean"])
def test_a_common_distance(make_trainer: MakeTrainer, reduce: str) -> None:
    """Penalty coef / 2 * d^2 * n, gradient coef * d, for n entries (or 1 per tensor)."""
    method = moved(make_trainer, 0.5, coef=0.2, reduce=reduce)
    own = [name for name in method.initial if name.startswith("actor.")]
    sizes = [method.initial[name][0].numel() if reduce == "sum" else 1 for name in own]
    penalty = method.actor_penalty(method.sample_batch(4))
    torch.testing.assert_close(penalty, torch.full((2,), 0.1 * 0.25 * sum(sizes)))
    weight = method.trainer.params["actor.1.weight"]
    [grad] = torch.autograd.grad(penalty.sum(), [weight])
    count = 1 if reduce == "sum" else weight[0].numel()
    torch.testing.assert_close(grad, torch.full_like(grad, 0.2 * 0.5 / count))


@pytest.mark.parametrize(("heads", "divided"), [("current", 16), ("all", 2 * 16)])
def test_a_mean_is_one_critics(make_trainer: MakeTrainer, heads: str, divided: int) -> None:
    """Gradient coef * d / entries: a critic's last kernel is [16, 1], there are two and two heads.

    Results with all heads have been trained with the mean over both critics, and over heads.
    """
    method = moved(make_trainer, 0.5, position=1, coef=0.2, reduce="mean", heads=heads)
    penalty, params = method.critic_penalty(method.sample_batch(4)), method.trainer.params
    hidden, last = torch.autograd.grad(
        penalty.sum(), [params["critic.1.weight"], params["critic.4.weight"]]
    )
    torch.testing.assert_close(hidden, torch.full_like(hidden, 0.2 * 0.5 / (16 * divided)))
    current = last[:, :, 1]
    count = divided * (2 if heads == "all" else 1)
    torch.testing.assert_close(current, torch.full_like(current, 0.2 * 0.5 / count))


def test_networks_are_chosen(make_trainer: MakeTrainer) -> None:
    method = moved(make_trainer, 0.5, networks="critic")
    batch = method.sample_batch(4)
    assert method.actor_penalty(batch).tolist() == [0, 0]
    assert (method.critic_penalty(batch) > 0).all()


def test_decoupled_shrinks_the_distance_by_its_factor(make_trainer: MakeTrainer) -> None:
    method = moved(make_trainer, 0.5, coef=100.0, decoupled=True)
    batch = method.sample_batch(4)
    assert method.actor_penalty(batch).tolist() == [0, 0]
    with torch.no_grad():
        method.after_update(batch, batch.reward)
    for name, start in method.initial.items():
        distance = method.trainer.params[name].detach() - start
        torch.testing.assert_close(distance, torch.full_like(distance, 0.5 * (1 - 1e-3 * 100)))


@pytest.mark.parametrize("decoupled", [False, True])
def test_the_decoupled_pull_has_no_sum_or_mean(make_trainer: MakeTrainer, decoupled: bool) -> None:
    ends = []
    for reduce in ("sum", "mean"):
        method = moved(make_trainer, 0.5, coef=1.0, reduce=reduce, decoupled=decoupled)
        method.trainer.train(2)
        ends.append(method.trainer.params["actor.1.weight"].detach())
    assert torch.equal(*ends) is decoupled


def test_without_sac_weights_return_to_their_start(make_trainer: MakeTrainer) -> None:
    method = moved(make_trainer, 0.05, coef=1.0)
    trainer = method.trainer
    before = method.actor_penalty(method.sample_batch(4)).detach()
    for _ in range(100):
        penalty = method.actor_penalty(method.sample_batch(4))
        grads = {name: torch.zeros_like(p) for name, p in trainer.params.items()}
        trainer.apply(grads | trainer._penalty_gradients(penalty))
    assert (method.actor_penalty(method.sample_batch(4)) < 1e-2 * before).all()


@pytest.mark.parametrize(("heads", "pulled"), [("current", [0, 1]), ("all", [1, 1])])
@pytest.mark.parametrize("decoupled", [False, True])
def test_heads_of_finished_tasks_rest(
    make_trainer: MakeTrainer, heads: str, pulled: list[int], decoupled: bool
) -> None:
    """One update of the second task, from 0.05 off the start, without gradients of SAC."""
    method = moved(make_trainer, 0.05, position=1, heads=heads, decoupled=decoupled, coef=100.0)
    trainer, batch = method.trainer, method.sample_batch(4)
    before = {name: p.detach().clone() for name, p in trainer.params.items()}
    grads = {name: torch.zeros_like(p) for name, p in trainer.params.items()}
    penalty = method.actor_penalty(batch) + method.critic_penalty(batch)
    trainer.apply(grads | trainer._penalty_gradients(penalty))
    with torch.no_grad():
        method.after_update(batch, batch.reward)
    for name in ("actor.4.weight", "critic.4.bias"):
        closer = (before[name] - trainer.params[name].detach()).movedim(trainer.task_axis(name), 0)
        assert [bool((head > 5e-4).all()) for head in closer] == pulled
        assert [bool((head == 0).all()) for head in closer] == [not one for one in pulled]


def test_records_without_the_option_pulled_all_heads() -> None:
    old = {"networks": "both", "coef": 0.01, "reduce": "sum", "decoupled": False}
    assert L2InitConfig.from_record(old) == L2InitConfig(heads="all")
    assert L2InitConfig(heads="all").record() == old
    assert L2InitConfig().record() == old | {"heads": "current"}
