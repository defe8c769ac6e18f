"""Meta-World as a suite: Continual World's ten tasks first, the other forty after them."""

import difflib

from cwbench.envs.metaworld.env import ACTION_DIM, MetaWorldEnv
from cwbench.envs.suite import Suite
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
_STOCK_COST = 3.0  # of the other tasks: a stock step is about four times ours, the policy the same


def step_cost(task: str) -> float:
    return _STEP_COST.get(task, _STOCK_COST)


def sizes(config: MetaWorldConfig) -> tuple[int, int]:
    return 12 if config.obs == "cw12" else 39, ACTION_DIM


def make(task: str, config: MetaWorldConfig) -> MetaWorldEnv:
    """An environment of the named task; the ten are fast, the others step as Meta-World does."""
    if task in CW_TASKS:
        from cwbench.envs.metaworld import lean

        return lean.make(task, config)
    if task in METAWORLD_TASKS:
        from cwbench.envs.metaworld import stock

        return stock.make(task, config)
    close = difflib.get_close_matches(task, METAWORLD_TASKS, n=1, cutoff=0.0)[0]
    raise ValueError(f"unknown task {task!r}; did you mean {close!r}?")


SUITE = Suite(MetaWorldConfig, lambda: METAWORLD_TASKS, make, sizes, step_cost)
