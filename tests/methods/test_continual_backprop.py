"""Continual backpropagation: which units go, and how many."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from cwbench.learner import Trainer
from cwbench.methods.continual_backprop import (
    ContinualBackprop,
    ContinualBackpropConfig,
    corrected,
    least_useful,
)

MakeTrainer = Callable[..., Trainer]


def cbp(trainer: Trainer, **options: Any) -> ContinualBackprop:
    method = ContinualBackprop(ContinualBackpropConfig(**options), trainer)
    trainer.method = method
    method.on_task_start(0)
    return method


def test_the_least_useful_mature_unit_is_marked() -> None:
    utility = torch.tensor([[3.0, 1.0, 2.0, 0.5], [1.0, 2.0, 3.0, 4.0]])
    mature = torch.tensor([[True, True, True, False], [False] * 4])
    marked = least_useful(utility, mature)
    assert marked.tolist() == [[False, True, False, False], [False] * 4]


def test_a_unit_without_outgoing_weights_goes_first(make_trainer: MakeTrainer) -> None:
    trainer = make_trainer([0])
    trainer.params["actor.2.weight"].detach()[:, 9] = 0  # what unit 9 of layer 1 gives
    method = cbp(trainer, replacement_rate=1.0, maturity=0, every=1, networks="actor")
    method.at_interval()
    assert method.age["actor.1"][0].tolist() == [float(unit != 9) for unit in range(16)]
    assert trainer.params["actor.2.weight"].detach()[0, 9].eq(0).all()


def test_replacements_come_at_their_rate(make_trainer: MakeTrainer) -> None:
    trainer = make_trainer([0, 1])
    method = cbp(trainer, replacement_rate=0.01, maturity=0, every=2)
    counts = dict.fromkeys(method.age, 0)
    for _ in range(20):
        method.at_interval()
        for unit, age in method.age.items():
            counts[unit] += int((age == 0).sum())
    # 0.01 * 16 units * 40 updates = 6.4 of each layer, run and twin.
    expected = {unit: 6 * age[..., 0].numel() for unit, age in method.age.items()}
    assert counts == expected


def test_nothing_is_replaced_before_maturity(make_trainer: MakeTrainer) -> None:
    one, other = make_trainer([0]), make_trainer([0])
    cbp(one, maturity=10**6, every=1, samples=4)
    for trainer in (one, other):
        trainer.train(4)
    assert all(torch.equal(x, other.state()[name]) for name, x in one.state().items())


def test_first_only_leaves_later_layers_alone(make_trainer: MakeTrainer) -> None:
    trainer = make_trainer([0])
    method = cbp(trainer, replacement_rate=1.0, maturity=0, every=1, first_only=True)
    method.at_interval()
    assert {unit for unit, age in method.age.items() if age.any()} == {"actor.0", "critic.0"}


@pytest.mark.parametrize("decay", [0.0, 0.99, 0.99999])  # from the smallest to the largest
def test_the_corrected_utility_of_equal_contributions_is_that_contribution(decay: float) -> None:
    utility = torch.zeros(3)
    for age in range(1, 6):
        utility.lerp_(torch.tensor([0.0, 0.5, 2.0]), 1 - decay)
        found = corrected(utility, torch.full((3,), float(age)), decay)
        torch.testing.assert_close(found, torch.tensor([0.0, 0.5, 2.0]), rtol=2e-3, atol=0)
