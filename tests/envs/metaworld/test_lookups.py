"""Views of MuJoCo's arrays: where things are now, looked up once."""

from typing import Any

import numpy as np
import pytest

from cwbench.envs.metaworld import lean
from cwbench.envs.metaworld.lookups import Views
from cwbench.spec.config import MetaWorldConfig


@pytest.fixture(scope="module")
def sim() -> Any:
    env = lean.make("push", MetaWorldConfig())
    env.reset(np.random.default_rng(0))
    return env.sim


def test_bodies_and_sites_are_where_mujoco_has_them(sim: Any) -> None:
    for name, position in sim.bodies.items():
        assert (position == sim.data.body(name).xpos).all()
    for name, position in sim.sites.items():
        assert (position == sim.data.site(name).xpos).all()


def test_views_follow_the_simulation(sim: Any) -> None:
    hand = sim.bodies["hand"]
    before = hand.copy()
    for _ in range(5):
        sim.advance(np.ones(4, np.float32))
    assert (hand != before).any() and (hand == sim.data.body("hand").xpos).all()
    kept = sim._get_site_pos("rightEndEffector")  # a copy, as Meta-World's is
    assert kept is not sim.sites["rightEndEffector"]


def test_an_array_is_looked_up_once(sim: Any) -> None:
    views = Views(sim.data)
    assert views["body.hand.xpos"] is views["body.hand.xpos"]
    assert (views["body.hand.xpos"] == sim.bodies["hand"]).all()


def test_constants_of_an_episode_are_kept_until_it_ends() -> None:
    env = lean.make("push", MetaWorldConfig(reward="v2"))
    found = []
    for seed in (0, 0, 1):
        env.reset(np.random.default_rng(seed))
        env.step(np.zeros(4, np.float32))
        found.append(env.sim.caging_constants(0.005, 0.0))
        assert env.sim.caging_constants(1.0, 1.0) == found[-1]  # not computed again
    assert found[0] == found[1] != found[2]
