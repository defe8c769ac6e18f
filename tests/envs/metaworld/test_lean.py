"""Our environments against Meta-World's own, number by number and with `==`."""

import itertools
import math

import numpy as np
import pytest
from metaworld_pairs import episodes, noisy_expert, stock_env

from cwbench.envs.metaworld import lean, make
from cwbench.envs.metaworld.env import ACTION_DIM, CW12
from cwbench.spec.config import MetaWorldConfig
from cwbench.spec.tasks import CW_TASKS, METAWORLD_TASKS

VERSIONS = {"stock_v1": "v1", "v2": "v2"}


def random_policy(rng):
    # Beyond the box now and then: clipping is part of the step.
    return lambda obs: rng.uniform(-1.2, 1.2, ACTION_DIM).astype(np.float32)


DISTURBANCES = {
    "qpos": lambda data: data.qpos.__setitem__(0, math.nan),
    "qvel": lambda data: data.qvel.__setitem__(0, 1e11),
    "qacc": lambda data: data.qfrc_applied.__setitem__(0, 1e20),
}


@pytest.mark.parametrize("kind", DISTURBANCES)
def test_a_simulation_that_blows_up_is_reset_as_meta_world_s_is(kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # MuJoCo writes a log here
    rng = np.random.default_rng(0)
    stock, env = stock_env("push", "v1"), lean.make("push", MetaWorldConfig(reward="stock_v1"))
    policy = random_policy(rng)
    for number, _ in enumerate(episodes(stock, env, [policy], rng)):
        assert (env.sim.data.qpos == stock.data.qpos).all()
        assert (env.sim.data.qvel == stock.data.qvel).all()
        for data in (stock.data, env.sim.data):
            data.qfrc_applied[0] = 0
            if number == 20:
                assert data.time > 0.1
                DISTURBANCES[kind](data)
        assert env.unstable == (number > 20)
        if number == 21:
            assert stock.data.time < 0.1  # it was reset
        if number == 40:
            break


# Continual World's observations with its rewards, Meta-World's with its own; the rest is slow.
USUAL = [("stock_v1", "cw12"), ("v2", "full39")]
UNUSUAL = [("stock_v1", "full39"), ("v2", "cw12")]


@pytest.mark.parametrize(
    ("version", "layout"),
    [*USUAL, *(pytest.param(*pair, marks=pytest.mark.slow) for pair in UNUSUAL)],
)
@pytest.mark.parametrize("task", CW_TASKS)
def test_equals_meta_world(task, version, layout):
    rng = np.random.default_rng([CW_TASKS.index(task), len(layout)])
    stock = stock_env(task, VERSIONS[version])
    env = lean.make(task, MetaWorldConfig(obs=layout, reward=version))
    select = CW12 if layout == "cw12" else np.arange(39)
    solved = 0
    # A random policy soon has nothing new to show; the expert's episode is a whole one.
    short = itertools.islice(episodes(stock, env, [random_policy(rng)], rng), 61)
    whole = episodes(stock, env, [noisy_expert(task, rng)], rng)
    steps = itertools.chain(enumerate(short), enumerate(whole))
    for index, (obs, reward, success, ours) in steps:
        expected = obs.astype(np.float32)[select]
        if task == "window-close" and index < 2:
            # Deliberately not Meta-World's: its reset shows positions from before the window was
            # opened (next test), and one step later they are still the previous frame.
            stale = (select < 36) & (select >= 18 * index)
            expected, ours = expected[~stale], (ours[0][~stale], *ours[1:])
        assert (ours[0] == expected).all()
        assert ours[1] == reward and ours[2] == success
        assert (env.sim.data.qpos == stock.data.qpos).all()
        assert (env.sim.data.qvel == stock.data.qvel).all()
        solved += bool(success)
    # Otherwise the interesting half of a reward was not seen. push-back's expert needs luck.
    assert solved > 0 or task in ("push-back", "stick-pull", "shelf-place")


def test_window_close_reset_shows_the_window_where_it_is():
    """quirk: 0.2 m from where Meta-World's reset says, and 0 from where its next step starts."""
    import mujoco

    rng = np.random.default_rng(0)
    stock, env = (
        stock_env("window-close", "v1"),
        make("window-close", MetaWorldConfig(obs="full39")),
    )
    first = env.reset(rng)
    stock._last_rand_vec = env.save()["rand_vec"]
    obs, _ = stock.reset()
    assert first[4] - obs[4] == pytest.approx(0.2, abs=1e-6)
    mujoco.mj_forward(stock.model, stock.data)
    truth = stock._get_curr_obs_combined_no_goal().astype(np.float32)
    assert (first[:18] == truth).all() and (first[18:36] == truth).all()


def assert_equals_v2(task, policies, steps):
    """Our v2 environment against Meta-World's, for some steps of an episode per policy."""
    rng = np.random.default_rng(5)
    stock, env = stock_env(task, "v2"), make(task, MetaWorldConfig(obs="full39", reward="v2"))
    assert isinstance(env.sim, lean.Lean)
    for policy in policies:
        made = policy(task, rng)
        for obs, reward, success, ours in itertools.islice(
            episodes(stock, env, [made], rng), steps + 1
        ):
            assert (ours[0] == obs.astype(np.float32)).all()
            assert ours[1] == reward and ours[2] == success
            assert (env.sim.data.qpos == stock.data.qpos).all()
            assert (env.sim.data.qvel == stock.data.qvel).all()


# One of each kind: common caging, its variants, rotations in the reward, contacts in the success
# test, a goal that moves, joints, geoms kept in the slim model, a first observation that is stale.
KINDS = (
    *("basketball", "bin-picking", "soccer", "pick-place", "stick-push", "assembly"),
    *("coffee-pull", "door-open", "lever-pull", "dial-turn", "peg-insert-side", "reach-wall"),
)


@pytest.mark.parametrize("task", KINDS)
def test_v2_equals_meta_world(task):
    assert_equals_v2(task, [noisy_expert], steps=90)


@pytest.mark.slow
@pytest.mark.parametrize("task", METAWORLD_TASKS[len(CW_TASKS) :])
def test_v2_equals_meta_world_in_all_of_the_other_forty(task):
    assert_equals_v2(task, 3 * [noisy_expert, lambda task, rng: random_policy(rng)], steps=200)


# The repaired rewards, written a second time: from the formulas, on Meta-World's own simulation,
# by name and in plain arithmetic. They agree to rounding only, as the order of operations differs.


@pytest.mark.parametrize("task", CW_TASKS)
def test_slim_model_has_the_same_bodies(task):
    stock, slim = stock_env(task, "v1").model, make(task, MetaWorldConfig()).sim.model
    for field in ("body_mass", "body_inertia", "body_ipos", "body_iquat", "dof_invweight0"):
        assert (getattr(slim, field) == getattr(stock, field)).all(), field
    assert slim.ngeom < stock.ngeom and slim.ntex == 0
