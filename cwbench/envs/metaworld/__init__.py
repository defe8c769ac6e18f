"""Meta-World as a suite: Continual World's ten tasks first, the other forty after them."""

import difflib
import warnings
from functools import cache
from importlib.metadata import version

from cwbench.envs.metaworld.env import ACTION_DIM, MetaWorldEnv
from cwbench.envs.suite import Filmed, Suite
from cwbench.spec.config import MetaWorldConfig
from cwbench.spec.tasks import CW_TASKS, METAWORLD_TASKS

# What a worker's step costs, relative to the mean of the ten: time per step in the table of
# docs/environments.md, plus half a mean step for the policy.
_STEP_COST = {
    "hammer": 1.14,
    "push-wall": 0.95,
    "faucet-close": 0.83,
    "push-back": 0.96,
    "stick-pull": 1.11,
    "handle-press-side": 0.86,
    "push": 0.90,
    "shelf-place": 1.00,
    "window-close": 0.92,
    "peg-unplug-side": 1.31,
}
REWRITTEN = "3.1.1"  # of Meta-World
_STOCK_COST = 3.0  # of the other tasks: a stock step is about four times ours, the policy the same


def step_cost(task: str) -> float:
    return _STEP_COST.get(task, _STOCK_COST)


@cache
def rewrites_fit() -> bool:
    """Whether the installed Meta-World is the one that rewrites are tested with; warns if not."""
    installed = version("metaworld")
    if installed != REWRITTEN:
        warnings.warn(
            f"Meta-World {installed} is installed, but fast v2 rewards need {REWRITTEN}: tasks "
            "step as Meta-World does, two to four times slower",
            stacklevel=3,
        )
    return installed == REWRITTEN


def sizes(config: MetaWorldConfig) -> tuple[int, int]:
    return 12 if config.obs == "cw12" else 39, ACTION_DIM


def make(task: str, config: MetaWorldConfig) -> MetaWorldEnv:
    """An environment of the named task, stepped by `lean` where that is tested, else by Meta-World.

    `lean` has the ten tasks with V1 rewards, and all fifty with v2 rewards, which it derives from
    the source of one version of Meta-World.
    """
    if task in METAWORLD_TASKS:
        from cwbench.envs.metaworld import lean, stock

        fast = rewrites_fit() if config.reward == "v2" else task in CW_TASKS
        return lean.make(task, config) if fast else stock.make(task, config)
    close = difflib.get_close_matches(task, METAWORLD_TASKS, n=1, cutoff=0.0)[0]
    raise ValueError(f"unknown task {task!r}; did you mean {close!r}?")


def film(task: str, config: MetaWorldConfig, size: tuple[int, int]) -> Filmed:
    from cwbench.envs.metaworld.film import film as filmed

    return filmed(task, config, size)


SUITE = Suite(MetaWorldConfig, lambda: METAWORLD_TASKS, make, sizes, step_cost, film=film)
