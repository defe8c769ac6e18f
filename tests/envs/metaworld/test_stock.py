"""Stepping as Meta-World does it."""

import numpy as np
import pytest
from metaworld_pairs import expert, stock_env

from cwbench.envs import metaworld
from cwbench.envs.metaworld import lean, make
from cwbench.envs.metaworld.stock import UNSOLVABLE
from cwbench.spec.config import MetaWorldConfig


def test_another_version_of_meta_world_steps_as_it_does(monkeypatch):
    monkeypatch.setattr(metaworld, "version", lambda name: "3.2.0")
    metaworld.rewrites_fit.cache_clear()
    with pytest.warns(UserWarning, match="Meta-World 3.2.0 is installed, but fast v2 rewards need"):
        env = make("push", MetaWorldConfig(reward="v2"))
    assert not isinstance(env.sim, lean.Lean)
    assert isinstance(make("push", MetaWorldConfig()).sim, lean.Lean)
    metaworld.rewrites_fit.cache_clear()


@pytest.mark.parametrize("task", UNSOLVABLE)
def test_v2_tests_success_where_meta_worlds_v1_branch_cannot_pass(task):
    """The scripted policy solves them; rewards stay those of Meta-World's v1 branch."""
    ours = make(task, MetaWorldConfig())
    v2 = make(task, MetaWorldConfig(reward="v2"))
    stock = stock_env(task, "v1")
    policy, solved = expert(task), []
    ours.reset(np.random.default_rng(3))
    vector = ours.save()["rand_vec"]
    v2.reset_to(vector)
    stock._last_rand_vec = vector
    obs, _ = stock.reset()
    for _ in range(100):
        action = policy(obs).astype(np.float32)
        obs, paid, _, _, info = stock.step(action)
        assert not info["success"]
        _, given, success, _, _ = ours.step(action)
        assert given == paid and success == v2.step(action)[2] == ours.success_tests()["v3"]
        solved.append(success)
    assert any(solved) and not all(solved)
