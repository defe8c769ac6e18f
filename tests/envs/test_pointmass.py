"""The point mass: where it goes, what it is paid for, and what its pictures show."""

import numpy as np
import pytest
from numpy.typing import NDArray

from cwbench.envs.pointmass import PointMass, drawable
from cwbench.spec.config import PointMassConfig


def env_at(x: float, y: float, task: str = "reach-0-1") -> PointMass:
    env = PointMass(task, PointMassConfig())
    env.reset(np.random.default_rng(0))
    env.position = np.array([x, y])
    return env


def action(x: float, y: float) -> NDArray[np.float32]:
    return np.array([x, y, 9.0, 9.0], np.float32)  # the last two do not matter


def test_a_step_moves_by_a_tenth_and_stays_in_the_square() -> None:
    obs, *_ = env_at(0.2, -0.95).step(action(1, -1))
    assert obs[:2] == pytest.approx([0.3, -1.0]) and not obs[2:].any()


def test_the_reward_is_the_scaled_distance_and_one_at_the_goal() -> None:
    """Goal 0 is at (0.7, 0), goal 2 at (0, 0.7)."""
    _, reward, success, *_ = env_at(0.3, 0.0, "reach-0-1000").step(action(1, 0))
    assert reward == pytest.approx(-300) and not success
    _, reward, success, *_ = env_at(0.0, 0.5, "reach-2-1").step(action(0, 1))
    assert reward == pytest.approx(0.9) and success
    for gap, solved in ((0.149, True), (0.151, False)):
        assert env_at(0.7 - gap, 0.0).step(action(0, 0))[2] == solved


def test_an_episode_is_cut_at_the_horizon() -> None:
    env = env_at(0, 0)
    ends = [env.step(action(0, 0))[3:] for _ in range(env.horizon)]
    assert ends == [(False, False)] * (env.horizon - 1) + [(False, True)]
    with pytest.raises(ValueError, match="call reset"):
        env.step(action(0, 0))


def test_snapshots_of_earlier_versions_can_be_continued() -> None:
    env = env_at(0, 0)
    env.load({"place": np.array([0.1, 0.2]), "time": np.array(7)})
    assert env.position.tolist() == [0.1, 0.2] and env.time == 7


def test_the_picture_has_the_goal_where_it_is() -> None:
    shown = drawable("reach-2-1", PointMassConfig(), (50, 50))
    frame = shown.draw()
    rows, columns = np.nonzero((frame == (0, 158, 115)).all(-1))
    assert rows.mean() == pytest.approx((1.1 - 0.7) / 2.2 * 49, abs=0.5)  # up is less
    assert columns.mean() == pytest.approx(24.5, abs=0.5)
