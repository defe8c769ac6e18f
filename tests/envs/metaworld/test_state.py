"""A saved environment continues as if nothing had happened."""

import io

import numpy as np
import pytest

from cwbench.envs.metaworld import make
from cwbench.envs.metaworld.env import ACTION_DIM
from cwbench.spec.config import MetaWorldConfig
from cwbench.spec.tasks import CW_TASKS

CONFIGS = {
    "cw_v1": MetaWorldConfig(horizon=80),
    "v2": MetaWorldConfig(obs="full39", reward="v2", horizon=80),
}
# Of the forty: caging variants, a door, a fixture that moves, rotations, a goal that moves, and an
# attribute that the first step sets.
OTHERS = ("pick-place", "stick-push", "door-open", "window-open", "assembly", "bin-picking")


def through_a_file(state):
    file = io.BytesIO()
    np.savez(file, **state)
    file.seek(0)
    with np.load(file, allow_pickle=False) as loaded:
        return dict(loaded)


def reaching_actions(env, obs, count):
    """Towards the object and then down on it: contacts are where states are hard to restore."""
    thing = slice(3, 6) if len(obs) == 12 else slice(4, 7)
    for step in range(count):
        move = 20 * (obs[thing] - obs[:3]) if step < 40 else np.array([0, 0, -0.2])
        action = np.append(np.clip(move, -1, 1), -1 if step < 40 else 1).astype(np.float32)
        obs = env.step(action)[0]


def record(env, actions):
    """The rest of the episode, the reset after it and the beginning of the next episode."""
    rng = np.random.default_rng(1)
    steps = [env.step(action) for action in actions[:20]]
    steps.append((env.reset(rng), 0.0, False, False))
    return steps + [env.step(action) for action in actions[20:]]


def assert_continues(task, config):
    rng = np.random.default_rng(0)
    env, fresh = make(task, config), make(task, config)
    obs = env.reset(rng)
    reaching_actions(env, obs, 60)
    state = through_a_file(env.save())
    assert sum(value.nbytes for value in state.values()) < 8192

    fresh.reset(rng)  # another episode, to be forgotten
    fresh.load(state)
    actions = rng.uniform(-1, 1, (40, ACTION_DIM)).astype(np.float32)
    for expected, got in zip(record(env, actions), record(fresh, actions), strict=True):
        assert (got[0] == expected[0]).all() and got[1:] == expected[1:]
    assert (fresh.sim.data.qpos == env.sim.data.qpos).all()
    assert (fresh.sim.data.qvel == env.sim.data.qvel).all()


@pytest.mark.parametrize("version", CONFIGS)
@pytest.mark.parametrize("task", CW_TASKS)
def test_saved_state_continues(task, version):
    assert_continues(task, CONFIGS[version])


@pytest.mark.parametrize("task", OTHERS)
def test_saved_state_of_the_other_forty_continues(task):
    assert_continues(task, CONFIGS["v2"])


def test_saved_state_of_meta_worlds_own_stepping_continues():
    assert_continues("basketball", CONFIGS["cw_v1"])


@pytest.mark.parametrize("taken", [0, 1])
def test_saved_state_at_the_beginning_continues(taken):
    """The first step after a reset is simulated in another way than later ones."""
    env, other = (make("bin-picking", CONFIGS["v2"]) for _ in range(2))
    rng = np.random.default_rng(2)
    actions = rng.uniform(-1, 1, (20, ACTION_DIM)).astype(np.float32)
    for one, steps in ((env, taken), (other, 7)):
        one.reset(rng)
        for action in actions[:steps]:
            one.step(action)
    other.load(through_a_file(env.save()))
    for action in actions:
        got, expected = other.step(action), env.step(action)
        assert (got[0] == expected[0]).all() and got[1:] == expected[1:]


def test_saving_does_not_disturb():
    """The saved arrays are copies, and a second load of them still works."""
    env, other = make("hammer", CONFIGS["cw_v1"]), make("hammer", CONFIGS["cw_v1"])
    env.reset(np.random.default_rng(0))
    state = env.save()
    before = {name: value.copy() for name, value in state.items()}
    other.load(state)
    first = [other.step(np.ones(4, np.float32))[1] for _ in range(10)]
    other.load(state)
    assert [other.step(np.ones(4, np.float32))[1] for _ in range(10)] == first
    assert all((state[name] == before[name]).all() for name in before)


def test_latched_pick_is_part_of_the_state():
    """hammer's reward remembers that the hammer was once lifted; nothing in the simulator does."""
    env, fresh = make("hammer", CONFIGS["cw_v1"]), make("hammer", CONFIGS["cw_v1"])
    env.reset(np.random.default_rng(0))
    env.sim.pickCompleted = True
    fresh.load(through_a_file(env.save()))
    assert fresh.sim.pickCompleted is True
    fresh.reset(np.random.default_rng(0))
    assert fresh.sim.pickCompleted is False


def test_saving_needs_an_episode():
    with pytest.raises(RuntimeError, match="before its first reset"):
        make("push", CONFIGS["cw_v1"]).save()
