"""What callers of an environment rely on: names, vectors, horizon, observations, solvability."""

import numpy as np
import pytest
from metaworld_pairs import expert

from cwbench.envs.metaworld import make, sizes
from cwbench.envs.metaworld.env import ACTION_DIM
from cwbench.spec.config import MetaWorldConfig
from cwbench.spec.tasks import CW_TASKS

CW12, FULL39 = MetaWorldConfig(), MetaWorldConfig(obs="full39")
# Least distance between object and goal in the plane, from Meta-World's reset code; metres.
REJECTION = {"push-wall": 0.15, "push-back": 0.15, "stick-pull": 0.1, "push": 0.15}
# The scripted expert solves these always; the other three mostly.
ALWAYS_SOLVED = set(CW_TASKS) - {"push-back", "stick-pull", "shelf-place"}


def random_actions(rng, count):
    return rng.uniform(-1, 1, (count, ACTION_DIM)).astype(np.float32)


@pytest.mark.parametrize("config", [CW12, FULL39], ids=["cw12", "full39"])
def test_observations_are_new_float32_arrays(config):
    env = make("push", config)
    first = env.reset(np.random.default_rng(0))
    kept = first.copy()
    second = env.step(np.ones(ACTION_DIM, np.float32))[0]
    assert first.shape == second.shape == (sizes(config)[0],)
    assert first.dtype == second.dtype == np.float32
    assert (first == kept).all() and (second != kept).any()


@pytest.mark.parametrize("task", CW_TASKS)
def test_reset_depends_on_the_vector_alone(task):
    """Neither the episodes before nor what a reset remembers from an earlier vector shows."""
    rng = np.random.default_rng(0)
    used = make(task, FULL39)
    for _ in range(2):
        used.reset(rng)
        for action in random_actions(rng, 30):
            used.step(action)
    first = used.reset(rng)
    vector = used.save()["rand_vec"]
    fresh = make(task, FULL39)
    assert (fresh.reset_to(vector) == first).all()
    assert (fresh.sim.data.qpos == used.sim.data.qpos).all()
    assert (fresh.sim.data.qvel == used.sim.data.qvel).all()


@pytest.mark.parametrize("task", CW_TASKS)
def test_vectors_are_uniform_draws_that_the_task_allows(task):
    """The vectors are the generator's own draws less those too close, and seeds tell them apart."""
    env = make(task, CW12)
    box = env.sim._random_reset_space
    count = 100 if task in ("push", "push-back") else 3  # only there draws are rejected at all
    raw = np.random.default_rng(7)
    draws = [raw.uniform(box.low, box.high) for _ in range(2 * count)]
    close = REJECTION.get(task, 0)
    allowed = [
        draw for draw in draws if np.linalg.norm(draw[:2] - draw[-3:-1]) >= close or not close
    ]
    assert len(draws) - len(allowed) >= (5 if count == 100 else 0)

    rng = np.random.default_rng(7)
    for expected in allowed[:count]:
        env.reset(rng)
        assert (env.save()["rand_vec"] == expected).all()
    env.reset(np.random.default_rng(8))
    assert (env.save()["rand_vec"] != allowed[0]).any()


@pytest.mark.parametrize(
    ("task", "vector", "problem"),
    [
        ("push", [0, 0.7, 0.02, 0, 0.8, 0.02], "closer than push allows"),  # 0.10 m apart
        ("push", [0, 0.5, 0.02, 0, 0.8, 0.02], "outside push's box"),
        ("push", [0, 0.65, 0.02], "outside push's box"),
        ("hammer", [0, np.nan, 0], "outside hammer's box"),
        ("reach", [0, 0.7, 0.02, 0, 0.8, 0.1], "closer than reach allows"),  # not one of the ten
    ],
)
def test_bad_vector_is_refused_and_leaves_no_episode(task, vector, problem):
    env = make(task, CW12)
    env.reset(np.random.default_rng(0))
    with pytest.raises(ValueError, match=problem):
        env.reset_to(vector)
    if "closer" in problem:
        with pytest.raises(RuntimeError, match="reset it first"):
            env.step(np.zeros(ACTION_DIM, np.float32))


@pytest.mark.parametrize("config", [CW12, FULL39], ids=["cw12", "full39"])
@pytest.mark.parametrize("task", CW_TASKS)
def test_goal_is_visible(task, config):
    env = make(task, config)
    first = env.reset(np.random.default_rng(0))
    second = env.step(np.zeros(ACTION_DIM, np.float32))[0]
    assert np.linalg.norm(first[-3:]) > 0.4  # the table begins 0.4 m from the robot
    assert (first[-3:] == second[-3:]).all()


@pytest.mark.parametrize("task", ["push", "reach"])
def test_horizon(task):
    env = make(task, MetaWorldConfig(horizon=7))
    action = np.zeros(ACTION_DIM, np.float32)
    with pytest.raises(RuntimeError, match="reset it first"):
        env.step(action)
    for seed in range(2):
        env.reset(np.random.default_rng(seed))
        assert [env.step(action)[4] for _ in range(7)] == [False] * 6 + [True]
        with pytest.raises(RuntimeError, match="reset it first"):
            env.step(action)


def test_default_horizon_is_200():
    env = make("push", CW12)
    env.reset(np.random.default_rng(0))
    truncated = [env.step(np.zeros(ACTION_DIM, np.float32))[4] for _ in range(200)]
    assert truncated.index(True) == 199


def test_action_shape_is_checked():
    env = make("push", CW12)
    env.reset(np.random.default_rng(0))
    with pytest.raises(ValueError, match=r"shape \(4,\), got \(3,\)"):
        env.step(np.zeros(3, np.float32))


def test_an_action_in_double_precision_is_rounded():
    """Meta-World's arithmetic depends on it."""
    first, second, rng = make("push", CW12), make("push", CW12), np.random.default_rng(0)
    first.reset(np.random.default_rng(0))
    second.reset(np.random.default_rng(0))
    for action in rng.uniform(-1, 1, (5, ACTION_DIM)):
        one, other = first.step(action), second.step(action.astype(np.float32))
        assert (one[0] == other[0]).all() and one[1:] == other[1:]
    assert (first.sim.data.qpos == second.sim.data.qpos).all()


def test_nail_can_be_hidden():
    shown, hidden = make("hammer", CW12), make("hammer", MetaWorldConfig(hammer_nail=False))
    for first, second in [
        (shown.reset(np.random.default_rng(0)), hidden.reset(np.random.default_rng(0))),
        (shown.step(np.ones(4, np.float32))[0], hidden.step(np.ones(4, np.float32))[0]),
    ]:
        assert first[6:9] == pytest.approx([0.24, 0.64, 0.11], abs=0.01)
        assert (second[6:9] == 0).all()
        assert (np.delete(first, [6, 7, 8]) == np.delete(second, [6, 7, 8])).all()


@pytest.mark.parametrize("task", CW_TASKS)
def test_expert_solves_the_task(task):
    env, act, rng = make(task, FULL39), expert(task), np.random.default_rng(0)
    solved = 0
    for _ in range(10):
        obs, success, truncated = env.reset(rng), False, False
        while not (success or truncated):
            obs, _, success, _, truncated = env.step(act(obs))
        solved += success
    assert solved >= (9 if task in ALWAYS_SOLVED else 5)


@pytest.mark.parametrize(
    ("task", "expected", "spread"),
    [("hammer", 130e3, 15e3), ("push", 295e3, 28e3), ("stick-pull", 204e3, 72e3)],
)
def test_expert_return_has_the_measured_size(task, expected, spread):
    """Means over 100 episodes of another implementation; five episodes lie within two spreads."""
    env, act, rng = make(task, FULL39), expert(task), np.random.default_rng(1)
    returns = []
    for _ in range(5):
        obs, total, truncated = env.reset(rng), 0.0, False
        while not truncated:
            obs, reward, _, _, truncated = env.step(act(obs))
            total += reward
        returns.append(total)
    assert np.mean(returns) == pytest.approx(expected, abs=2 * spread / np.sqrt(5))
