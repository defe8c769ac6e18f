"""The simulated tasks: names, and `make` to get an environment.

Meta-World and MuJoCo are imported by `make`, not here, so that listing tasks is fast.
"""

import difflib

from cwbench.envs.metaworld.env import ACTION_DIM, Env
from cwbench.spec.config import EnvConfig
from cwbench.spec.tasks import CW_TASKS

__all__ = ["ACTION_DIM", "TASKS", "Env", "all_tasks", "make", "obs_dim", "step_cost"]

TASKS = CW_TASKS

# What a worker's step costs, relative to the mean of the ten: time per step in the table of
# docs/environments.md, plus half a mean step for the policy. Used to share lanes out evenly.
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

_OTHERS = tuple(
    """
    assembly basketball bin-picking box-close button-press-topdown button-press-topdown-wall
    button-press button-press-wall coffee-button coffee-pull coffee-push dial-turn disassemble
    door-close door-lock door-open door-unlock hand-insert drawer-close drawer-open faucet-open
    handle-press handle-pull-side handle-pull lever-pull peg-insert-side pick-place-wall
    pick-out-of-hole reach pick-place plate-slide plate-slide-side plate-slide-back
    plate-slide-back-side soccer stick-push reach-wall sweep-into sweep window-open
    """.split()
)


def all_tasks() -> tuple[str, ...]:
    """All fifty tasks of Meta-World, Continual World's ten first."""
    return TASKS + _OTHERS


def step_cost(task: str) -> float:
    """Relative time of a worker's step; 1 for tasks of which nothing is known."""
    return _STOCK_COST if task in _OTHERS else _STEP_COST.get(task, 1.0)


def obs_dim(config: EnvConfig) -> int:
    return 12 if config.obs == "cw12" else 39


def make(task: str, config: EnvConfig) -> Env:
    """An environment of the named task; the ten are fast, the others step as Meta-World does."""
    if task in TASKS:
        from cwbench.envs.metaworld import lean

        return lean.make(task, config)
    if task in _OTHERS:
        from cwbench.envs.metaworld import stock

        return stock.make(task, config)
    close = difflib.get_close_matches(task, all_tasks(), n=1, cutoff=0.0)[0]
    raise ValueError(f"unknown task {task!r}; did you mean {close!r}?")
