"""A peg that spins fast enough is unstable in MuJoCo's integrator, and what is made of it."""

import math
from typing import Any

import mujoco
import numpy as np
import pytest

from cwbench.envs import instability
from cwbench.envs.metaworld import make
from cwbench.envs.metaworld.env import FASTEST_SQUARE, MetaWorldEnv
from cwbench.spec.config import MetaWorldConfig
from cwbench.spec.tasks import CW_TASKS

STILL = np.zeros(4, np.float32)
FREE = slice(9, 12)  # the peg's place in qpos, its velocity in qvel
SPIN = slice(12, 15)


def thrown(rate: float, **options: Any) -> MetaWorldEnv:
    """An episode in which the peg is thrown up, spinning at so many radians per second."""
    instability.silence()
    env = make("peg-unplug-side", MetaWorldConfig(**options))
    env.reset(np.random.default_rng(1))
    data = env.sim.data
    data.qpos[FREE] = 0, 0.7, 0.6
    data.qvel[FREE] = 0, 0, 3
    data.qvel[SPIN] = rate * np.array([0.9, 0.3, 0.3])
    mujoco.mj_forward(env.sim.model, data)
    return env


def rest(env: MetaWorldEnv) -> tuple[list[np.ndarray], list[float]]:
    observations, rewards, ended = [], [], False
    while not ended:
        obs, reward, *_, ended = env.step(STILL)
        observations.append(obs)
        rewards.append(reward)
    return observations, rewards


def test_a_peg_that_spins_at_ten_turns_a_second_is_stable() -> None:
    env = thrown(60)
    _, rewards = rest(env)
    assert not env.unstable and min(rewards) > -2


@pytest.mark.parametrize("task", CW_TASKS)
def test_violent_actions_are_far_from_the_limit(task: str) -> None:
    env, rng = make(task, MetaWorldConfig()), np.random.default_rng(0)
    env.reset(rng)
    ended, fastest = False, 0.0
    while not ended:
        *_, ended = env.step(rng.choice([-1, 1], 4).astype(np.float32))
        fastest = max(fastest, float(np.linalg.norm(env.sim.data.qvel)))
    assert fastest < 0.1 * math.sqrt(FASTEST_SQUARE) and not env.unstable


def test_faster_ones_leave_the_room_and_are_counted() -> None:
    """How far each gets is chaotic and differs between processors."""
    paid = []
    for rate in (150, 200, 250, 300, 400):
        env = thrown(rate)
        paid += rest(env)[1]
        assert env.unstable
        env.reset(np.random.default_rng(2))
        assert not env.unstable
    assert min(paid) < -100


@pytest.mark.parametrize("rate", [150, 300])
def test_held_it_shows_the_last_observation_and_pays_nothing(rate: float) -> None:
    env = thrown(rate, unstable="hold")
    observations, rewards = rest(env)
    assert env.unstable and min(rewards) > -10
    began = rewards.index(0.0)
    assert set(rewards[began:]) == {0.0} and 0.0 not in rewards[:began]
    assert all((obs == observations[began - 1]).all() for obs in observations[began:])
    assert np.abs(observations).max() < 10
    assert env.success_tests() == {"v3": False, "v1": False}


def test_a_speed_that_is_no_number_is_held_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """MuJoCo would reset the simulation in the next step. No test of success passes meanwhile."""
    env = thrown(0, unstable="hold")
    before, *_ = env.step(STILL)
    advance = env.sim.advance

    def spoiled(action: Any) -> Any:
        made = advance(action)
        env.sim.data.qvel[0] = math.nan
        return made

    monkeypatch.setattr(env.sim, "advance", spoiled)
    monkeypatch.setattr(env, "_v1_test", lambda sim, obs: True)
    after, reward, *_ = env.step(STILL)
    assert env.unstable and reward == 0.0 and (after == before).all()
    assert env.success_tests() == {"v3": False, "v1": False}


def test_until_then_it_steps_like_stock() -> None:
    (seen, paid), (held, earned) = rest(thrown(150)), rest(thrown(150, unstable="hold"))
    began = earned.index(0.0)
    assert began > 10 and paid[:began] == earned[:began]
    assert all((a == b).all() for a, b in zip(seen[:began], held[:began], strict=True))


def test_a_held_episode_is_saved_as_that() -> None:
    """After a reset the simulation itself looks like any other."""
    env = thrown(0, unstable="hold")
    env.step(STILL)
    env.sim.data.qvel[0] = 1e11
    obs, *_ = env.step(STILL)
    assert env.unstable and np.abs(env.sim.data.qvel).max() < 100
    other = make("peg-unplug-side", MetaWorldConfig(unstable="hold"))
    other.load(env.save())
    after, reward, *_ = other.step(STILL)
    assert other.unstable and reward == 0.0 and (after == obs).all()


def test_a_reset_by_mujoco_is_held_too() -> None:
    env = thrown(0, unstable="hold")
    before, *_ = env.step(STILL)
    env.sim.data.qvel[0] = 1e11
    after, reward, *_ = env.step(STILL)
    assert env.unstable and reward == 0.0 and (after == before).all()
