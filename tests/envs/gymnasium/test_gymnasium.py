"""Gymnasium environments as tasks: what is asked of them, refused, changed and resumed."""

from dataclasses import replace

import torch
from countdown import COUNTDOWN, PENDULUM, configured, lane, rows

from cwbench.learner.heads import TaskIndex
from cwbench.learner.replay import Batch
from cwbench.spec.transition import Dims


def test_terminated_is_stored_and_truncated_is_not() -> None:
    config = configured(COUNTDOWN)
    out = rows(config, 9)
    assert len(lane(config, "countdown").collect(out)) == 2
    assert out[:, -1].tolist() == [0, 0, 0, 1, 0, 0, 0, 1, 0]
    config = configured(replace(COUNTDOWN, horizon=3))
    out = rows(config, 9)
    assert len(lane(config, "countdown").collect(out)) == 3
    assert not out[:, -1].any()


def test_tasks_of_a_cycle_take_turns_whatever_their_episodes() -> None:
    config = configured(COUNTDOWN, PENDULUM)  # turns of 50 steps
    both = lane(config, "countdown", "pendulum")
    out = rows(config, 120)
    finished = both.collect(out)
    rewards = out[:, 5]
    assert (rewards[:50] == 2).all() and (rewards[100:] == 2).all() and (rewards[50:100] <= 0).all()
    assert sum(episode.complete for episode in finished) == 12 + 1 + 5
    assert len(finished) == 12 + 1 + 5 + 1  # the turn ends in the middle of the thirteenth


def test_a_terminal_state_has_no_value_after_it() -> None:
    """Two states: the first leads to the second with reward 1, the second ends with reward 3."""
    dims = Dims(1, 1, terminates=True)
    table = torch.tensor([[[0.0, 0, 1, 1, 0], [1.0, 0, 3, 0, 1]]])  # s, a, r, s', terminated
    batch = Batch(
        **dims.unpack(table),
        tasks=TaskIndex.single(0, 1, 2, torch.device("cpu")),
        weight=torch.full((1, 2), 0.5),
        rows=torch.arange(2)[None],
    )
    values = torch.zeros(2)
    for _ in range(3):
        values = (batch.reward + batch.discount(0.5) * values[batch.next_obs[..., 0].long()])[0]
    assert values.tolist() == [1 + 0.5 * 3, 3]
