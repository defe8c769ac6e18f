"""SAC's losses for one transition of one run, against the formulas with numbers put in."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from cwbench.learner.heads import TaskIndex
from cwbench.learner.losses import Losses, autograd_gradients, sac_losses
from cwbench.learner.replay import Batch
from cwbench.spec.statistics import STATISTICS

GAMMA, ALPHA, TARGET_ENTROPY = 0.9, 0.5, -2.0
REWARD, ACTION, STATE, NEXT_STATE = 10.0, 0.25, 1.0, 2.0
WEIGHTS, TARGET_WEIGHTS = (3.0, 1.0), (5.0, 4.0)

# Without noise the action is tanh(0) = 0, whose density is that of a standard normal at 0.
LOG_PI = -0.5 * math.log(2 * math.pi)
Y = REWARD + GAMMA * (min(TARGET_WEIGHTS) * NEXT_STATE - ALPHA * LOG_PI)


def policy(params: Any, obs: Tensor, tasks: TaskIndex) -> tuple[Tensor, Tensor]:
    """Mean 0 at first, log-std 0."""
    return params["actor"] * torch.ones_like(obs), torch.zeros_like(obs)


def critic(params: Any, x: Tensor, tasks: TaskIndex) -> Tensor:
    """Q_i = weight_i * state + action: [R, 2, B, 1]."""
    state, action = x[..., :1].unsqueeze(1), x[..., 1:].unsqueeze(1)
    weights: Tensor = params["critic"].view(1, 2, 1, 1)
    return weights * state + action


def given(
    terminated: float | None = None, mean: float = 0.0, std: float = 1.0, weight: float = 1.0
) -> tuple[Any, ...]:
    """The arguments of `sac_losses`."""
    one = torch.ones(1, 1)
    batch = Batch(
        obs=STATE * one.unsqueeze(-1),
        action=ACTION * one.unsqueeze(-1),
        reward=REWARD * one,
        next_obs=NEXT_STATE * one.unsqueeze(-1),
        tasks=TaskIndex.single(0, 1, 1, torch.device("cpu")),
        weight=weight * one,
        rows=torch.zeros(1, 1, dtype=torch.long),
        terminated=None if terminated is None else terminated * one,
    )
    params = {
        "critic": torch.tensor(WEIGHTS),
        "actor": torch.zeros(1),
        "log_alpha": torch.full((1, 1), math.log(ALPHA)),
    }
    params = {name: p.requires_grad_() for name, p in params.items()}
    target = {"critic": torch.tensor(TARGET_WEIGHTS)}
    value = {"mean": mean * one, "std": std * one}
    noise = torch.zeros(1, 1, 1)
    return policy, critic, params, target, value, batch, noise, noise, GAMMA, TARGET_ENTROPY


def test_losses_follow_their_formulas() -> None:
    found, y = sac_losses(*given())
    errors = [weight * STATE + ACTION - Y for weight in WEIGHTS]
    assert y.item() == pytest.approx(Y)
    assert found.critic.item() == pytest.approx(sum(error**2 for error in errors) / 2)
    assert found.actor.item() == pytest.approx(ALPHA * LOG_PI - min(WEIGHTS) * STATE)
    assert found.alpha.item() == pytest.approx(math.log(ALPHA) * (-LOG_PI - TARGET_ENTROPY))
    assert found.q.item() == pytest.approx(WEIGHTS[0] * STATE + ACTION)
    assert found.entropy.item() == pytest.approx(-LOG_PI)


def test_logged_means_do_not_grow_with_the_weights_of_a_batch() -> None:
    """Losses do: a method that replays adds those of two halves."""
    once, twice = (sac_losses(*given(weight=weight))[0] for weight in (1.0, 2.0))
    assert (twice.q.item(), twice.entropy.item()) == (once.q.item(), once.entropy.item())
    assert twice.actor.item() == pytest.approx(2 * once.actor.item())


def test_a_terminal_state_is_worth_its_reward() -> None:
    _, y = sac_losses(*given(terminated=1.0))
    assert y.item() == REWARD


def test_normalised_critics_are_read_and_taught_in_their_units() -> None:
    mean, std = 4.0, 2.0
    found, y = sac_losses(*given(mean=mean, std=std))
    next_q = min(TARGET_WEIGHTS) * NEXT_STATE * std + mean
    want = REWARD + GAMMA * (next_q - ALPHA * LOG_PI)
    assert y.item() == pytest.approx(want)
    errors = [weight * STATE + ACTION - (want - mean) / std for weight in WEIGHTS]
    assert found.critic.item() == pytest.approx(sum(error**2 for error in errors) / 2)


def test_each_loss_moves_its_own_parameters() -> None:
    """d actor / d mean = -dQ/da = -1; d critic_i = error_i * s; d alpha = entropy - target."""
    made = autograd_gradients(*given())
    errors = [weight * STATE + ACTION - Y for weight in WEIGHTS]
    assert made.grads["actor"].item() == pytest.approx(-1)
    assert made.grads["critic"].tolist() == pytest.approx([error * STATE for error in errors])
    assert made.grads["log_alpha"].item() == pytest.approx(-LOG_PI - TARGET_ENTROPY)
    assert not made.losses.actor.requires_grad


def test_statistics_are_in_the_order_of_their_columns() -> None:
    values = Losses(*(torch.tensor([float(number)]) for number in range(5)))
    named = dict(zip(STATISTICS, values.statistics(torch.tensor([9.0])), strict=True))
    assert {name: x.item() for name, x in named.items()} == {
        "actor_loss": 0,
        "critic_loss": 1,
        "q": 3,
        "entropy": 4,
        "penalty": 9,
    }
