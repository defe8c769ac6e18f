"""The suites of environments, and what the rest of the code asks of them.

Simulators are imported by `make`, not here, so that listing tasks is fast.
"""

from collections.abc import Sequence

from cwbench.envs import gymnasium, metaworld, pointmass
from cwbench.envs.suite import Drawable, Env, HasSuccessTests, Suite
from cwbench.spec.config import EnvConfig
from cwbench.spec.errors import UserError
from cwbench.spec.tasks import Task
from cwbench.spec.transition import Dims

__all__ = [
    "SUITES",
    "Drawable",
    "Env",
    "HasSuccessTests",
    "Suite",
    "configure",
    "dims",
    "drawable",
    "make",
    "step_cost",
]

SUITES: dict[str, Suite] = {
    suite.config_class.suite: suite for suite in (metaworld.SUITE, pointmass.SUITE, gymnasium.SUITE)
}


def configure(config: EnvConfig, definitions: Sequence[Task]) -> EnvConfig:
    """The config of a sequence's environments, with what is only known when they are made."""
    return SUITES[config.suite].configure(config, definitions)


def make(task: str, config: EnvConfig) -> Env:
    """An environment of the named task."""
    return SUITES[config.suite].make(task, config)


def drawable(task: str, config: EnvConfig, size: tuple[int, int]) -> Drawable:
    """An environment of the named task that can be drawn."""
    suite = SUITES[config.suite]
    if suite.drawable is None:
        raise UserError(f"environments of the suite {config.suite} cannot be rendered")
    return suite.drawable(task, config, size)


def dims(config: EnvConfig) -> Dims:
    """Sizes of observations and actions, and whether episodes can end in terminal states."""
    suite = SUITES[config.suite]
    return Dims(*suite.sizes(config), suite.terminates)


def step_cost(task: str, config: EnvConfig) -> float:
    """Time of a worker's step relative to the mean of the task's suite."""
    return SUITES[config.suite].step_cost(task, config)
