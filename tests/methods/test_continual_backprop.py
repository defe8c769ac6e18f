"""Continual backpropagation: which units go, and how many."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from cwbench.learner import Trainer, UserError
from cwbench.methods.continual_backprop import (
    ContinualBackprop,
    ContinualBackpropConfig,
    corrected,
    least_useful,
)
from cwbench.spec.config import NetworkConfig

MakeTrainer = Callable[..., Trainer]


def cbp(trainer: Trainer, **options: Any) -> ContinualBackprop:
    method = ContinualBackprop(ContinualBackpropConfig(**options), trainer)
    trainer.method = method
    method.on_task_start(0)
    return method


def test_the_least_useful_mature_units_are_marked() -> None:
    utility = torch.tensor([[3.0, 1.0, 2.0, 0.5], [3.0, 1.0, 1.0, 0.5], [1.0, 2.0, 3.0, 4.0]])
    mature = torch.tensor([[True, True, True, False]] * 2 + [[False] * 4])
    marked = least_useful(utility, mature, torch.tensor([2.9, 1.0, 3.0]))
    # Of equals the first, and none where none is mature.
    assert [row.nonzero().flatten().tolist() for row in marked] == [[1, 2], [1], []]


def test_a_unit_without_outgoing_weights_goes_first(make_trainer: MakeTrainer) -> None:
    trainer = make_trainer([0])
    trainer.params["actor.2.weight"].detach()[:, 9] = 0  # what unit 9 of layer 1 gives
    method = cbp(trainer, replacement_rate=1 / 16, maturity=0, every=1, networks="actor")
    method.at_interval()
    assert method.age["actor.1"][0].tolist() == [float(unit != 9) for unit in range(16)]
    assert trainer.params["actor.2.weight"].detach()[0, 9].eq(0).all()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        # 0.01 * 16 units * 40 updates = 6.4 of each layer, run and twin.
        ({"replacement_rate": 0.01, "every": 2}, 6),
        # 0.02 * 16 * 40 = 12.8; at each of 4 looks 3.2 are due.
        ({"replacement_rate": 0.02, "every": 10, "at_once": 4}, 12),
    ],
)
def test_replacements_come_at_their_rate(
    make_trainer: MakeTrainer, options: dict[str, Any], expected: int
) -> None:
    method = cbp(make_trainer([0, 1]), maturity=0, **options)
    counts = dict.fromkeys(method.age, 0)
    for _ in range(40 // method.interval):
        method.at_interval()
        for unit, age in method.age.items():
            counts[unit] += int((age == 0).sum())
    assert counts == {unit: expected * age[..., 0].numel() for unit, age in method.age.items()}


@pytest.mark.parametrize(
    ("options", "advice"),
    [
        ({"replacement_rate": 0.02}, "write --at-once 4"),  # 3.2 of 16 units
        ({"replacement_rate": 0.02, "at_once": 3}, "write --at-once 4"),
        ({"replacement_rate": 0.35, "at_once": 16}, "the largest --every is 2"),
    ],
)
def test_a_rate_that_cannot_be_kept_is_refused(
    make_trainer: MakeTrainer, options: dict[str, Any], advice: str
) -> None:
    with pytest.raises(UserError, match=advice):
        cbp(make_trainer([0]), **options)
    config = ContinualBackpropConfig(**options)
    assert ContinualBackprop(config, make_trainer([0]))  # to read policies that older runs have


def test_only_layers_that_it_acts_on_limit_the_rate(make_trainer: MakeTrainer) -> None:
    trainer = make_trainer([0], network=NetworkConfig(hidden="4,16"))
    assert cbp(trainer, replacement_rate=0.02, first_only=True).interval == 10


def test_units_replaced_together_are_different(make_trainer: MakeTrainer) -> None:
    """Equal incoming and zero outgoing weights would stay equal for ever."""
    trainer = make_trainer([0, 1])
    method = cbp(trainer, replacement_rate=0.02, every=10, maturity=0, at_once=4)
    method.at_interval()
    for name, age in method.age.items():
        weight = trainer.params[f"{name}.weight"].detach()
        for columns, new in zip(weight.flatten(0, -3), (age == 0).flatten(0, -2), strict=True):
            assert new.sum() == 3
            assert len(columns.T[new].unique(dim=0)) == 3


def test_new_weights_are_drawn_as_initial_ones(make_trainer: MakeTrainer) -> None:
    """From the same range, and different ones for each run, layer and call."""
    trainer = make_trainer([0, 1])
    method = cbp(trainer, at_once=16)
    drawn: list[torch.Tensor] = []
    for update in (0, 10):
        trainer.streams.seek(update)
        for name, age in method.age.items():
            network, layer = name.split(".")
            made = method._incoming(network, int(layer), torch.ones_like(age, dtype=torch.bool))
            initial = trainer.fresh_trunk(network, "")[f"{name}.weight"]
            assert made.shape == initial.shape
            for x in (made, -made):
                torch.testing.assert_close(x.max(), initial.abs().max(), rtol=0.05, atol=0)
            drawn += made.flatten(0, -3)
    numbers = torch.cat([x.flatten() for x in drawn])
    assert len(numbers.unique()) > 0.99 * len(numbers)


def test_utility_is_activity_times_outgoing_weights_of_the_current_head(
    make_trainer: MakeTrainer,
) -> None:
    """After one look the running mean without its bias is what was seen then."""
    trainer = make_trainer([0], position=1)
    config = ContinualBackpropConfig(every=10, maturity=100, networks="actor")
    method = ContinualBackprop(config, trainer)
    method.on_task_start(0)
    batch = trainer.replay.sample(config.samples, "cbp")
    hidden = trainer.hidden("actor", batch)
    method.at_interval()
    for layer in (2, 3):
        weight = trainer.params[f"actor.{layer + 1}.weight"].detach()[0]
        weight = weight if layer == 2 else weight[1]  # the second task's head
        seen = hidden[layer][0].abs().mean(0) * weight.abs().sum(-1)
        name = f"actor.{layer}"
        found = corrected(method.utility[name], method.age[name], config.decay)[0]
        torch.testing.assert_close(found, seen.detach(), rtol=1e-4, atol=0)


def test_mature_units_alone_count_and_go(make_trainer: MakeTrainer) -> None:
    """Age 20 is protected by a maturity of 20. 0.1 * 5 updates * 4 mature units: two are due.

    Unit 7 is old, so its running mean has no bias: its 8 is less than 5 / (1 - 0.99^21) = 26.
    """
    method = cbp(make_trainer([0]), maturity=20, every=5, replacement_rate=0.1, at_once=9)
    age, utility = method.age["actor.1"], method.utility["actor.1"]
    age.fill_(20)
    age[:, 4:8] = torch.tensor([21.0, 21, 21, 1000])
    utility.copy_(torch.arange(16.0) + 1)
    replaced = method._take_due("actor.1")
    assert replaced[0].nonzero().flatten().tolist() == [4, 7]
    assert age[0, 4:8].tolist() == [0, 21, 21, 0] and utility[0, 4:8].tolist() == [0, 6, 7, 0]
    assert method.due["actor.1"].tolist() == [0]


def test_units_of_a_network_that_is_reset_are_new(make_trainer: MakeTrainer) -> None:
    old = cbp(make_trainer([0]), maturity=0, every=5, replacement_rate=0.001)
    old.at_interval()
    assert old.age["critic.1"].eq(5).all() and old.due["critic.1"].gt(0).all()
    config = ContinualBackpropConfig(reset="critic")
    new = ContinualBackprop(config, make_trainer([0], position=1))
    new.load_state({name: x.clone() for name, x in old.state().items()})
    new.begin_task(1)
    for name, x in new.state().items():
        assert x.eq(0).all() if "critic" in name else torch.equal(x, old.state()[name]), name


def test_nothing_is_replaced_before_maturity(make_trainer: MakeTrainer) -> None:
    one, other = make_trainer([0]), make_trainer([0])
    cbp(one, maturity=10**6, every=1, samples=4)
    for trainer in (one, other):
        trainer.train(4)
    assert all(torch.equal(x, other.state()[name]) for name, x in one.state().items())


def test_first_only_leaves_later_layers_alone(make_trainer: MakeTrainer) -> None:
    trainer = make_trainer([0])
    method = cbp(trainer, replacement_rate=1 / 16, maturity=0, every=1, first_only=True)
    method.at_interval()
    assert {unit for unit, age in method.age.items() if age.any()} == {"actor.0", "critic.0"}


@pytest.mark.parametrize("decay", [0.0, 0.99, 0.99999])  # from the smallest to the largest
def test_the_corrected_utility_of_equal_contributions_is_that_contribution(decay: float) -> None:
    utility = torch.zeros(3)
    for age in range(1, 6):
        utility.lerp_(torch.tensor([0.0, 0.5, 2.0]), 1 - decay)
        found = corrected(utility, torch.full((3,), float(age)), decay)
        torch.testing.assert_close(found, torch.tensor([0.0, 0.5, 2.0]), rtol=2e-3, atol=0)
