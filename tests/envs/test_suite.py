"""What every suite must offer, held against an environment of each."""

import numpy as np
import pytest
from countdown import PENDULUM, configured

from cwbench import envs
from cwbench.spec.config import MetaWorldConfig, PointMassConfig

CONFIGS = {
    "metaworld": ("push", MetaWorldConfig()),
    "pointmass": ("reach-0-1", PointMassConfig()),
    "gymnasium": ("pendulum", configured(PENDULUM)),
}


def test_every_suite_is_held_to_its_interface() -> None:
    assert CONFIGS.keys() == envs.SUITES.keys()


@pytest.mark.parametrize("suite", CONFIGS)
def test_an_environment_keeps_to_its_suites_sizes(suite: str) -> None:
    task, config = CONFIGS[suite]
    dims, env = envs.dims(config), envs.make(task, config)
    rng = np.random.default_rng(0)
    first = env.reset(rng)
    kept = first.copy()
    obs, reward, score, terminated, truncated = env.step(np.ones(dims.action, np.float32))
    assert obs.shape == first.shape == (dims.obs,) and obs.dtype == first.dtype == np.float32
    assert (first == kept).all()  # the caller may keep it
    assert np.isfinite(reward) and 0 <= score <= 1
    assert not (terminated or truncated) and envs.step_cost(task, config) > 0


@pytest.mark.parametrize("suite", CONFIGS)
def test_a_saved_state_continues_exactly(suite: str) -> None:
    task, config = CONFIGS[suite]
    one, other = (envs.make(task, config) for _ in range(2))
    actions = np.random.default_rng(1).uniform(-1, 1, (6, envs.dims(config).action))
    one.reset(np.random.default_rng(0))
    for action in actions[:3]:
        one.step(action.astype(np.float32))
    other.load(one.save())
    for action in actions[3:].astype(np.float32):
        (obs, *rest), (same, *equal) = one.step(action), other.step(action)
        assert (obs == same).all() and rest == equal


@pytest.mark.parametrize("suite", CONFIGS)
def test_resets_depend_on_the_generator_alone(suite: str) -> None:
    task, config = CONFIGS[suite]
    env = envs.make(task, config)
    first, second, again = (env.reset(np.random.default_rng(seed)) for seed in (3, 4, 3))
    assert (first == again).all() and (first != second).any()
