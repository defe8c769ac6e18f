"""What the comparison with Meta-World in test_lean.py cannot show of the rewriting rules."""

import inspect

import numpy as np
import pytest

from cwbench.envs.metaworld import make, rewrite
from cwbench.envs.metaworld.stock import stock_class
from cwbench.spec.config import MetaWorldConfig


@pytest.mark.parametrize("task", ["push", "stick-push", "assembly"])
def test_nothing_slow_is_left(task):
    found, _ = rewrite.methods(stock_class(task))
    names = {name for method in found.values() for name in _names(method)}
    assert "compute_reward" in found and "reset_model" not in found
    assert not names & {"tolerance", "linalg", "Rotation", "hamacher_product", "tcp_center"}


def _names(method):
    function = getattr(method, "fget", getattr(method, "__func__", method))
    return function.__code__.co_names if inspect.isfunction(function) else ()


def test_an_episode_s_constants_are_computed_once_and_forgotten():
    env = make("push", MetaWorldConfig(reward="v2"))
    rng, action = np.random.default_rng(0), np.zeros(4, np.float32)
    kept = []
    for _ in range(2):
        env.reset(rng)
        assert env.sim.episode == {}
        env.step(action)
        kept.append(dict(env.sim.episode))
        env.step(action)
        assert env.sim.episode == kept[-1]
    assert kept[0].keys() == kept[1].keys() and kept[0] != kept[1]
