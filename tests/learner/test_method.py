"""The contract's own pieces: options per run, options shared, state under flat names."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from cwbench.learner import Method, MethodConfig, Trainer, option
from cwbench.spec.options import rehearsed

MakeTrainer = Callable[..., Trainer]


@dataclass(frozen=True)
class PullConfig(MethodConfig):
    coef: float = option(1.0, "Strength.", per_run=True)
    samples: int = option(100, "Samples.", rehearsal=2)


class Pull(Method[PullConfig]):
    config_class = PullConfig
    state_names = ("anchor", "count")
    anchor: dict[str, Tensor]
    count: Tensor


def test_runs_have_their_own_values(make_trainer: MakeTrainer) -> None:
    method = Pull(PullConfig(), make_trainer([0, 1]))
    assert method.per_run(lambda config: config.coef).tolist() == [1, 1]
    method.assign([PullConfig(coef=2.0), PullConfig(coef=3.0)])
    assert method.per_run(lambda config: config.coef).tolist() == [2, 3]
    assert method.per_run(lambda config: 2 * config.coef).tolist() == [4, 6]


def test_the_same_option_is_the_same_tensor(make_trainer: MakeTrainer) -> None:
    """A captured update reads it where it lies."""
    method = Pull(PullConfig(), make_trainer([0]))
    first, second = (method.per_run(lambda config: config.coef) for _ in range(2))
    assert first is second


def test_shared_options_refuse_what_may_differ(make_trainer: MakeTrainer) -> None:
    method = Pull(PullConfig(samples=7), make_trainer([0, 1]))
    assert method.config.samples == 7
    with pytest.raises(AttributeError, match=r"per_run\(lambda c: c.coef\)"):
        print(method.config.coef)


def test_estimates_use_the_values_for_rehearsals() -> None:
    assert rehearsed(PullConfig(coef=5.0)) == PullConfig(coef=5.0, samples=2)


def test_state_survives_flat_names(make_trainer: MakeTrainer) -> None:
    one, other = (Pull(PullConfig(), make_trainer([0])) for _ in range(2))
    one.anchor, one.count = {"actor.0.weight": torch.ones(1, 2)}, torch.zeros(1)
    assert one.state().keys() == {"anchor:actor.0.weight", "count"}
    other.load_state(one.state())
    assert torch.equal(other.anchor["actor.0.weight"], one.anchor["actor.0.weight"])
    assert torch.equal(other.count, one.count)
