"""CKA-RL: composition, its gradient, and merging."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from cwbench.learner import Trainer
from cwbench.methods._reparametrised import join
from cwbench.methods.cka_rl import CKARL, CKARLConfig, merge

MakeTrainer = Callable[..., Trainer]


def start(make_trainer: MakeTrainer, parent: CKARL | None = None, **options: Any) -> CKARL:
    """The method at the start of the task after `parent`'s."""
    position = parent.trainer.position + 1 if parent else 0
    inherited = parent.trainer.state() if parent else None
    trainer = make_trainer([0, 1], position=position, inherited=inherited)
    method = CKARL(CKARLConfig(**options), trainer)
    trainer.method = method
    if parent:
        method.load_state(parent.state())
    method.on_task_start(position)
    return method


def finish(method: CKARL, updates: int = 3) -> CKARL:
    method.trainer.train(updates)
    method.on_task_end(method.trainer.position)
    return method


def test_the_first_task_is_fine_tuning(make_trainer: MakeTrainer) -> None:
    plain = make_trainer([0, 1])
    plain.train(3)
    method = finish(start(make_trainer))
    assert all(torch.equal(x, method.trainer.state()[name]) for name, x in plain.state().items())


def test_the_second_task_starts_at_the_base_and_its_pool_is_the_null_vector(
    make_trainer: MakeTrainer,
) -> None:
    first = finish(start(make_trainer))
    method = start(make_trainer, first)
    base = first.trainer.params
    for name, w in method.centre().items():
        expected = base[name][:, 0] if name.startswith("actor.4") else base[name]
        assert torch.equal(w, expected)
    assert method.vectors.shape[1] == 1 and not method.vectors.any()


def test_with_the_null_vector_alone_it_is_fine_tuning_of_a_vector(
    make_trainer: MakeTrainer,
) -> None:
    """Same gradients, so the same Adam steps, up to the rounding of base + vector."""
    method = start(make_trainer, finish(start(make_trainer)))
    plain = make_trainer([0, 1], position=1, inherited=method.trainer.state())
    for trainer in (plain, method.trainer):
        trainer.train(3)
    assert not method.phi["scale"].sub(1).any()  # no gradient without vectors
    for name, w in method.centre().items():
        torch.testing.assert_close(method.current(plain.params, name), w, rtol=1e-3, atol=2e-5)


def test_gradients_of_the_shares_by_finite_differences(
    make_trainer: MakeTrainer, double_precision: None
) -> None:
    method = finish(start(make_trainer))
    for _ in range(3):
        method = finish(start(make_trainer, method))
    method = start(make_trainer, method)
    method.phi["scale"].fill_(1.5)
    target = {name: torch.randn_like(w) for name, w in method.centre().items()}

    def loss() -> Tensor:
        return sum(((w - target[n]) ** 2).sum() for n, w in method.centre().items())  # type: ignore[return-value]

    pulled = method.pull_back({n: 2 * (w - target[n]) for n, w in method.centre().items()})
    for key, index in (("beta", (1, 2)), ("beta", (0, 0)), ("scale", (1, 0))):
        method.phi[key][index] += 1e-5
        above = loss()
        method.phi[key][index] -= 2e-5
        below = loss()
        method.phi[key][index] += 1e-5
        torch.testing.assert_close(pulled[key][index], (above - below) / 2e-5, rtol=1e-4, atol=1e-6)


def test_the_pool_gets_the_tasks_own_vector(make_trainer: MakeTrainer) -> None:
    """What is left of the actor without the base and its share of the earlier vectors."""
    method = finish(start(make_trainer, finish(start(make_trainer))))
    method = start(make_trainer, method)
    method.trainer.train(3)
    count = method.vectors.shape[1]
    draw = method.trainer.streams.normal_once("cka-beta", count)
    assert count == 2 and (count * method.phi["beta"] - draw).abs().max() < 0.01  # three steps on
    shares = torch.softmax(method.phi["scale"] * method.phi["beta"], 1)
    actor = join(method.centre().values())
    own = actor - method.base - torch.einsum("rn,rnp->rp", shares, method.vectors)
    method.on_task_end(2)
    torch.testing.assert_close(method.vectors[:, 2], own, rtol=0, atol=1e-6)


def test_the_pool_grows_to_its_limit(make_trainer: MakeTrainer) -> None:
    method, sizes = finish(start(make_trainer, pool=3)), []
    for _ in range(4):
        method = finish(start(make_trainer, method, pool=3), updates=1)
        sizes.append(method.vectors.shape[1])
    assert sizes == [2, 3, 3, 3]


def test_the_most_alike_are_replaced_by_their_mean() -> None:
    vectors = torch.tensor(
        [[[1.0, 0.0], [9.0, 9.0], [2.0, 0.1]], [[1.0, 0.0], [0.0, 1.0], [0.0, 5.0]]]
    )  # in the first run [9, 9] has larger products with both others, and smaller cosines
    merged = merge(vectors)
    torch.testing.assert_close(merged[0], torch.tensor([[1.5, 0.05], [9.0, 9.0]]))
    torch.testing.assert_close(merged[1], torch.tensor([[1.0, 0.0], [0.0, 3.0]]))


def test_merging_keeps_the_sum_of_the_pair_and_all_others() -> None:
    vectors = torch.randn(3, 5, 40, generator=torch.Generator().manual_seed(0))
    merged = merge(vectors)
    for run in range(3):
        kept = [x for x in merged[run] if any(torch.equal(x, y) for y in vectors[run])]
        assert len(kept) == 3
        [mean] = [x for x in merged[run] if not any(torch.equal(x, y) for y in kept)]
        torch.testing.assert_close(2 * mean + sum(kept), vectors[run].sum(0))


@pytest.mark.parametrize(("pair", "mean"), [((2.0, 2.0), 2.0), ((0.0, 2.0), 1.0)])
def test_equal_vectors_merge_to_themselves_and_zero_halves(
    pair: tuple[float, float], mean: float
) -> None:
    vectors = torch.tensor([[[pair[0]], [pair[1]]]])
    assert merge(vectors).item() == mean


@pytest.mark.parametrize("scope", ["all", "heads"])
def test_an_old_task_is_acted_for_by_the_same_bits(make_trainer: MakeTrainer, scope: str) -> None:
    first = finish(start(make_trainer, scope=scope))
    before = {name: x.clone() for name, x in first.policy_weights(0).items()}
    second = finish(start(make_trainer, first, scope=scope))
    for name, x in second.policy_weights(0).items():
        own = x[:, :1] if name.startswith("actor.4") else x
        assert torch.equal(own, before[name]), name


def test_heads_alone_leave_the_shared_weights_to_the_trainer(make_trainer: MakeTrainer) -> None:
    method = start(make_trainer, finish(start(make_trainer, scope="heads")), scope="heads")
    assert set(method.phi) == {"actor.4.weight", "actor.4.bias", "beta", "scale"}
    before = method.trainer.params["actor.1.weight"].detach().clone()
    method.trainer.train(2)
    assert (before != method.trainer.params["actor.1.weight"].detach()).any()
