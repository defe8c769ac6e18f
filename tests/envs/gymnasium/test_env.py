"""Padded sizes, scaled actions, ends of episodes and saved states."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from countdown import COUNTDOWN, PENDULUM, Bounds, Early, Odd, configured, lane, rows
from numpy.testing import assert_array_equal

from cwbench import envs
from cwbench.spec.tasks import Score, Task
from cwbench.spec.transition import Dims

CHEETAH = Task("cheetah", "HalfCheetah-v5", score=Score(threshold=0.0), horizon=40)


def test_sizes_are_padded_and_actions_scaled() -> None:
    config = configured(COUNTDOWN, PENDULUM)
    assert envs.dims(config) == Dims(3, 2, terminates=True) and config.horizon == 50
    env: Any = envs.make("countdown", config)
    assert_array_equal(env.reset(np.random.default_rng(0)), [1, 0, 0])
    for action in ([-1, 1], [0, 0], [1, -1]):
        env.step(np.array(action, np.float32))
    assert np.array(env.env.seen) == pytest.approx(np.array([[0, 4], [5, 0], [10, -4]]))


def test_the_largest_action_is_the_upper_bound() -> None:
    """In 64 bits -1.9 + 2 * (-0.4 + 1.9) / 2 is larger than -0.4."""
    low, high = -1.9, -0.4
    assert low + 2 * ((high - low) / 2) > high
    kwargs = {"low": low, "high": high, "dtype": "float64"}
    env: Any = envs.make("x", configured(Task("x", Bounds, kwargs, horizon=9)))
    env.reset(np.random.default_rng(0))
    env.step(np.ones(1, np.float32))
    assert env.env.seen[-1].tolist() == [high]


def test_terminal_states_scores_and_limits() -> None:
    env = envs.make("countdown", configured(COUNTDOWN))
    env.reset(np.random.default_rng(0))
    steps = [env.step(np.zeros(2, np.float32)) for _ in range(4)]
    assert [step[2:] for step in steps] == [(0, False, False)] * 3 + [(1, True, False)]
    with pytest.raises(RuntimeError, match="reset it first"):
        env.step(np.zeros(2, np.float32))
    cut = envs.make("countdown", configured(replace(COUNTDOWN, horizon=2, score=Score(0.0, 8.0))))
    cut.reset(np.random.default_rng(0))
    assert cut.step(np.zeros(2, np.float32))[2:] == (0, False, False)
    assert cut.step(np.zeros(2, np.float32))[2:] == (0.5, False, True)


def test_a_terminal_state_at_the_limit_is_terminal() -> None:
    """Targets must not bootstrap through it."""
    env = envs.make("countdown", configured(replace(COUNTDOWN, horizon=4)))
    env.reset(np.random.default_rng(0))
    steps = [env.step(np.zeros(2, np.float32)) for _ in range(4)]
    assert steps[-1][2:] == (1, True, False)


def test_the_environment_itself_may_end_an_episode_before_the_limit() -> None:
    env = envs.make("x", configured(Task("x", Odd, {"truncated": True}, horizon=9)))
    env.reset(np.random.default_rng(0))
    assert env.step(np.zeros(2, np.float32))[2:] == (0, False, True)
    with pytest.raises(RuntimeError, match="reset it first"):
        env.step(np.zeros(2, np.float32))


def test_an_episode_does_not_inherit_the_success_of_the_one_before() -> None:
    env: Any = envs.make("countdown", configured(COUNTDOWN))
    env.reset(np.random.default_rng(0))
    assert [env.step(np.zeros(2, np.float32))[2] for _ in range(4)][-1] == 1
    env.reset(np.random.default_rng(0))
    env.env.left = iter((0,))  # ends at once, without success
    assert env.step(np.zeros(2, np.float32))[2:] == (0, True, False)


@pytest.mark.parametrize(
    ("info", "score"),
    [
        ({"is_success": 1.0}, 1),
        ({"is_success": 0.0}, 0),
        ({"success": 0.0, "is_success": 1.0}, 0),
        ({"success": 1.0, "is_success": 0.0}, 1),
    ],
)
def test_success_has_one_of_two_names(info: dict[str, float], score: float) -> None:
    env = envs.make("x", configured(Task("x", Odd, {"info": info}, horizon=1)))
    env.reset(np.random.default_rng(0))
    assert env.step(np.zeros(2, np.float32))[2:] == (score, False, True)


MOVING = replace(
    CHEETAH, env="InvertedDoublePendulum-v5", wrappers=("countdown:Moving",), name="moving"
)


@pytest.mark.parametrize(
    "task",
    [
        *(PENDULUM, CHEETAH, MOVING, Task("early", Early, horizon=20)),
        *(replace(CHEETAH, env=name) for name in ("Ant-v5", "Humanoid-v5")),
    ],
)
def test_a_resumed_lane_equals_an_uninterrupted_one(task: Task) -> None:
    config = configured(task)
    assert config.record()["tasks"][0]["resume"] == "exact"
    first, second = lane(config, task.name), lane(config, task.name)
    first.collect(rows(config, 53))
    second.load(first.save())
    one, other = rows(config, 60), rows(config, 60)
    ends = [
        [(episode.score, episode.total) for episode in part.collect(out)]
        for part, out in ((first, one), (second, other))
    ]
    assert ends[0] == ends[1]
    assert_array_equal(one, other)


def test_where_no_state_can_be_saved_a_new_episode_begins() -> None:
    config = configured(COUNTDOWN)
    assert config.record()["tasks"][0]["resume"] == "episode"
    first, second = lane(config, "countdown"), lane(config, "countdown")
    first.collect(rows(config, 6))
    second.load(first.save())
    assert (second.step, second.time, second.episode) == (6, 0, first.episode + 1)
