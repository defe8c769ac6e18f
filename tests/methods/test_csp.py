"""CSP: points of the subspace, what is trained, and when the subspace grows."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from cwbench.learner import Trainer
from cwbench.methods.csp import BIAS, CSP, CSPConfig, biased
from cwbench.spec.config import SACConfig

MakeTrainer = Callable[..., Trainer]
SMALL = {"candidates": 8, "candidate_states": 16}


def start(
    make_trainer: MakeTrainer,
    parent: CSP | None = None,
    returns: Sequence[float] = (),
    sac: SACConfig | None = None,
    **options: Any,
) -> CSP:
    """The method at the next task's start; `returns` with and without its anchor."""
    position = parent.trainer.position + 1 if parent else 0
    inherited = parent.trainer.state() if parent else None
    trainer = make_trainer([0, 1], position=position, inherited=inherited, sac=sac)
    answers = iter(returns)
    trainer.try_heads = lambda *_: torch.full((2, 1), next(answers))
    method = CSP(CSPConfig(**SMALL | options), trainer)
    trainer.method = method
    if parent:
        method.load_state(parent.state())
    method.on_task_start(position)
    return method


def finish(method: CSP, updates: int = 3) -> CSP:
    method.trainer.train(updates)
    method.on_task_end(method.trainer.position)
    return method


def equal(some: dict[str, Tensor] | Any, others: Any) -> bool:
    return all(torch.equal(x, others[name]) for name, x in some.items())


def test_one_anchor_is_fine_tuning_bit_for_bit(make_trainer: MakeTrainer) -> None:
    plain = make_trainer([0, 1])
    plain.train(3)
    method = finish(start(make_trainer))
    assert equal(plain.state(), method.trainer.state())
    for name, x in method.policy_weights(0).items():
        assert torch.equal(x, plain.params[name])


def test_a_point_is_the_weighted_sum_of_anchors(make_trainer: MakeTrainer) -> None:
    method = finish(start(make_trainer))
    other = torch.randn_like(method.anchors)
    method.anchors = torch.cat([method.anchors, other], 1)
    a = torch.tensor([[0.25, 0.75], [1.0, 0.0]])
    flat = torch.cat([x.flatten(1) for x in method.point(a).values()], 1)
    torch.testing.assert_close(flat[0], 0.25 * method.anchors[0, 0] + 0.75 * other[0, 0])
    assert torch.equal(flat[1], method.anchors[1, 0])


def test_with_a_copy_of_one_anchor_all_points_are_the_same(make_trainer: MakeTrainer) -> None:
    method = start(make_trainer, finish(start(make_trainer)))
    for update in range(3):
        method.trainer.streams.seek(update)
        for name, w in method.weights().items():
            if name != BIAS:
                torch.testing.assert_close(w, method.phi[name])


def test_coefficients_are_uniform_on_the_simplex(make_trainer: MakeTrainer) -> None:
    method = start(make_trainer, finish(start(make_trainer)))
    draws = torch.rand(2, 3000, 3, generator=torch.Generator().manual_seed(0))
    a = torch.stack([method._draw(x) for x in draws.unbind(1)])  # [3000, R, 2]
    torch.testing.assert_close(a.sum(-1), torch.ones(3000, 2))
    with_new = a[..., 1] > 0
    assert float(with_new.float().mean()) == pytest.approx(0.5, abs=0.04)
    shares = a[..., 1][with_new]  # uniform in [0, 1]: mean 1/2, variance 1/12
    assert float(shares.mean()) == pytest.approx(0.5, abs=0.03)
    assert float(shares.var()) == pytest.approx(1 / 12, abs=0.01)


@pytest.mark.parametrize("number", [0.0, 2.0**-24, 0.5, 1 - 2.0**-23, 1 - 2.0**-24])
def test_an_anchor_alone_has_the_whole_share(make_trainer: MakeTrainer, number: float) -> None:
    """Whatever is drawn, the smallest and the largest uniform number included."""
    method = start(make_trainer, finish(start(make_trainer)))
    share = method.coefficients(torch.full((2, 2), number), torch.zeros(2, 1))
    assert share.tolist() == [[1, 0], [1, 0]]


def test_a_dropped_anchor_has_no_share(make_trainer: MakeTrainer) -> None:
    second = finish(start(make_trainer, finish(start(make_trainer)), returns=(1.0, 1.0)))
    third = start(make_trainer, second)
    a = third.coefficients(torch.rand(2, 3), torch.ones(2, 1))
    assert a[:, 1].tolist() == [0, 0] and (a[:, [0, 2]] > 0).all()


@pytest.mark.parametrize(
    ("returns", "grows"),
    [
        *[((1.2, 1.0), True), ((1.05, 1.0), False), ((0.0, 0.0), False)],
        *[((-8.0, -10.0), True), ((-9.5, -10.0), False), ((-10.5, -10.0), False)],
    ],
)
def test_the_subspace_grows_only_when_it_pays(
    make_trainer: MakeTrainer, returns: tuple[float, float], grows: bool
) -> None:
    first = finish(start(make_trainer))
    before = {name: x.clone() for name, x in first.policy_weights(0).items()}
    second = finish(start(make_trainer, first, returns))
    assert second.alive.tolist() == [[1.0, float(grows)]] * 2
    assert bool(second.anchors[:, 1].any()) is grows
    assert (second.best[:, 1, 1] > 0).tolist() == [grows] * 2
    for name, x in second.policy_weights(0).items():  # the old policy, the same bits
        own = x[:, :1] if name.startswith("actor.4") else x
        assert torch.equal(own, before[name]), name
    assert equal(second.policy_weights(1), second.trainer.actor_params)  # what the task leaves
    if not grows:  # one anchor is left, so both tasks share it
        assert equal(second.point(second.best[:, 1]), second.point(second.best[:, 0]))


def test_runs_decide_for_themselves(make_trainer: MakeTrainer) -> None:
    method = start(make_trainer, finish(start(make_trainer)))
    answers = iter([torch.tensor([[2.0], [1.0]]), torch.tensor([[1.0], [1.0]])])
    method.trainer.try_heads = lambda *_: next(answers)
    assert finish(method).alive.tolist() == [[1.0, 1.0], [1.0, 0.0]]


def test_the_new_anchor_gets_its_share_of_the_gradient(make_trainer: MakeTrainer) -> None:
    method = start(make_trainer, finish(start(make_trainer)))
    method.mix = torch.tensor([[0.75, 0.25], [1.0, 0.0]])
    grads = {name: torch.ones_like(x) for name, x in method.centre().items()}
    pulled = method.pull_back(grads)
    assert pulled["actor.1.weight"][0].eq(0.25).all() and pulled["actor.1.weight"][1].eq(0).all()
    assert pulled["U"][0, :, 0].eq(0.75).all() and pulled["U"][0, :, 1].eq(0.25).all()
    assert pulled[BIAS].eq(1).all()


def test_coefficients_as_a_bias_are_coefficients_as_inputs(make_trainer: MakeTrainer) -> None:
    """Q(s, action, a) with a among the inputs, for an a that is the same in the whole batch."""
    method = start(make_trainer, finish(start(make_trainer)))
    params, a = method.trainer.params, torch.tensor([[0.75, 0.25], [0.4, 0.6]])
    batch = method.trainer.replay.sample_once(8, "test")
    inputs = torch.cat([batch.obs, batch.action, a.unsqueeze(1).expand(-1, 8, -1)], -1)
    weight = torch.cat([params["critic.0.weight"], method.phi["U"]], -2)
    wide = inputs.unsqueeze(1) @ weight + method.phi[BIAS].unsqueeze(-2)
    narrow = inputs[..., :-2].unsqueeze(1) @ params["critic.0.weight"]
    torch.testing.assert_close(narrow + biased(method.phi, a).unsqueeze(-2), wide)


def test_old_anchors_do_not_move_and_critics_start_again(make_trainer: MakeTrainer) -> None:
    first = finish(start(make_trainer))
    method = start(make_trainer, first)
    fresh = method.trainer.fresh_trunk("critic", "@1")
    assert torch.equal(method.trainer.params["critic.1.weight"], fresh["critic.1.weight"])
    before = method.anchors.clone()
    for update in range(3):
        averaged = method.averaged["U"].clone()
        method.trainer.train(1)
        slowly = 0.995 * averaged + 0.005 * method.phi["U"]
        torch.testing.assert_close(method.averaged["U"], slowly)
        method.trainer.streams.seek(update + 1)
        method.weights()
        target = method.trainer.target[BIAS]
        assert torch.equal(target, biased(method.averaged, method.mix))
        assert not torch.equal(target, biased(method.phi, method.mix))
    assert torch.equal(before, method.anchors)


def test_a_new_anchor_starts_at_the_mean_of_the_living(make_trainer: MakeTrainer) -> None:
    second = finish(start(make_trainer, finish(start(make_trainer)), returns=(2.0, 1.0)))
    third = start(make_trainer, second)
    mean = torch.cat([third.phi[name].flatten(1) for name in third.trainer.group("actor")], 1)
    torch.testing.assert_close(mean, second.anchors.mean(1))
    # 16 inputs and three coefficients, 16 units; the largest of 192 uniform numbers is near 1.
    limit = math.sqrt(6 / (16 + 3 + 16))
    assert third.phi["U"].abs().max() <= limit
    assert third.phi["U"].abs().max() > 0.95 * limit


def test_a_mix_is_worth_what_the_first_critic_says(make_trainer: MakeTrainer) -> None:
    method = start(make_trainer, finish(start(make_trainer)))
    batch = method.trainer.replay.sample_once(8, "test")
    mix = torch.tensor([[0.75, 0.25], [0.4, 0.6]])
    params = dict(method.trainer.params) | {BIAS: biased(method.phi, mix)}
    q = method.trainer.q(params, batch.obs, batch.action, batch.tasks)
    torch.testing.assert_close(method._value(mix, batch), q[:, 0].mean(1, keepdim=True))


def test_with_delayed_actor_updates_the_critics_move_alone_first(make_trainer: MakeTrainer) -> None:
    sac = SACConfig(batch_size=16, actor_every=2)
    method = start(make_trainer, finish(start(make_trainer)), sac=sac)
    before = {name: x.clone() for name, x in method.phi.items()}
    method.trainer.train(1)
    moved = {name for name, x in method.phi.items() if not torch.equal(x, before[name])}
    assert moved == {BIAS, "U"}
    method.trainer.train(1)
    assert not any(torch.equal(x, before[name]) for name, x in method.phi.items())
    assert method.adam is not None
    assert [int(steps) for steps in method.adam.steps] == [2, 2]  # the actor's on one batch


def test_the_search_finds_what_the_critic_prefers(make_trainer: MakeTrainer) -> None:
    method = start(make_trainer, finish(start(make_trainer)), candidates=64)
    method._value = lambda mix, batch: mix[:, -1:]  # type: ignore[method-assign]
    assert (method._search(1.0)[:, -1] > 0.9).all()
    assert method._search(0.0)[:, -1].tolist() == [0, 0]


def test_the_task_in_training_is_evaluated_with_the_critics_choice(
    make_trainer: MakeTrainer,
) -> None:
    """And the search leaves the critics as they were."""
    first = finish(start(make_trainer))
    method = start(make_trainer, first)
    method.trainer.train(3)
    state = {name: x.clone() for name, x in method.trainer.state().items()}
    found = method.evaluated_weights(1)
    chosen = method._growing_point(method._search(1.0))
    assert torch.equal(found["actor.1.weight"], chosen["actor.1.weight"])
    assert torch.equal(found["actor.4.weight"][:, 1], chosen["actor.4.weight"])
    assert equal(state, method.trainer.state())
    assert equal(method.evaluated_weights(0), method.policy_weights(0))  # a finished task


def test_the_acting_policy_is_evaluated_on_request(make_trainer: MakeTrainer) -> None:
    method = start(make_trainer, finish(start(make_trainer)), evaluate="drawn")
    method.trainer.train(3)
    assert equal(method.evaluated_weights(1), method.policy_weights(1))
