"""Stepping as Meta-World does it."""

import pytest

from cwbench.envs import metaworld
from cwbench.envs.metaworld import lean, make
from cwbench.spec.config import MetaWorldConfig


def test_another_version_of_meta_world_steps_as_it_does(monkeypatch):
    monkeypatch.setattr(metaworld, "version", lambda name: "3.2.0")
    metaworld.rewrites_fit.cache_clear()
    with pytest.warns(UserWarning, match="Meta-World 3.2.0 is installed, but fast v2 rewards need"):
        env = make("push", MetaWorldConfig(reward="v2"))
    assert not isinstance(env.sim, lean.Lean)
    assert isinstance(make("push", MetaWorldConfig()).sim, lean.Lean)
    metaworld.rewrites_fit.cache_clear()
