"""V1's success tests: their limits, and where they differ from Meta-World 3's on an episode."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest

from cwbench.envs.metaworld import make
from cwbench.envs.metaworld.success import V1
from cwbench.spec.config import MetaWorldConfig
from cwbench.spec.tasks import CW_TASKS

GOAL = np.array([0.1, 0.7, 0.2])
X, Y, Z = np.eye(3)

# Where the tested object stands relative to the goal: the direction, the limit in metres along it,
# and a direction that the test does not look at.
LIMITS = {
    "hammer": (Y, 0.05, X),
    "push-wall": (X, 0.07, Z),
    "faucet-close": ((X + Z) / np.sqrt(2), 0.05, None),
    "push-back": (Y, 0.07, Z),
    "stick-pull": (X, 0.08, Z),
    "handle-press-side": (Z, 0.04, X),
    "push": ((X + Y) / np.sqrt(2), 0.07, Z),
    "shelf-place": (Z, 0.08, None),
    "window-close": (X, 0.05, Y),
    "peg-unplug-side": (X, 0.07, Z),
}


def passes(task, offset, *, stick_to_fingers=0.0):
    """The test's answer with the object at the goal plus an offset."""
    obs, there = np.zeros(39), GOAL + offset
    obs[11 if task == "stick-pull" else 4 :][:3] = there
    fingers = obs[4:7] + np.array([0, stick_to_fingers, 0])
    sim = SimpleNamespace(
        _target_pos=GOAL, tcp_center=fingers, get_body_com={"nail_link": there}.get
    )
    return V1[task](sim, obs)


@pytest.mark.parametrize("task", CW_TASKS)
def test_limits(task):
    direction, limit, ignored = LIMITS[task]
    for sign in (1, -1):
        assert passes(task, sign * (limit - 1e-6) * direction)
        assert not passes(task, sign * (limit + 1e-6) * direction)
        assert ignored is None or passes(task, sign * ignored)


def test_the_stick_must_be_in_the_fingers():
    assert passes("stick-pull", 0 * X, stick_to_fingers=0.049)
    assert not passes("stick-pull", 0 * X, stick_to_fingers=0.051)


@pytest.mark.parametrize("task", ["hammer", "handle-press-side", "push", "shelf-place"])
def test_looser_tests_pass_earlier(task):
    """In these V1 asks for less than Meta-World 3, of the same motion."""
    from metaworld.policies import ENV_POLICY_MAP

    policy = ENV_POLICY_MAP[f"{task}-v3"]()
    env = make(task, MetaWorldConfig(obs="full39"))
    obs = env.reset(np.random.default_rng(0))
    steps = []
    for _ in range(200):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", r"Constant\(s\) may be too high", UserWarning)
            action = np.clip(policy.get_action(obs.astype(float)), -1, 1)
        obs, _, success, _, _ = env.step(action)
        tests = env.success_tests()
        assert tests["v3"] == success
        steps.append((tests["v1"], tests["v3"]))
    assert (True, False) in steps and (True, True) in steps and (False, True) not in steps


def test_other_tasks_have_one_test():
    env = make("reach", MetaWorldConfig())
    env.reset(np.random.default_rng(0))
    with pytest.raises(RuntimeError, match="no step"):
        env.success_tests()
    env.step(np.zeros(4, np.float32))
    assert env.success_tests().keys() == {"v3"}
