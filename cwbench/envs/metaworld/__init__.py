"""Meta-World as a suite: Continual World's ten tasks first, the other forty after them."""

import difflib
import warnings
from functools import cache
from importlib.metadata import version

from cwbench.envs.metaworld.env import ACTION_DIM, MetaWorldEnv
from cwbench.envs.suite import Drawable, Suite
from cwbench.spec.config import MetaWorldConfig
from cwbench.spec.tasks import CW_TASKS, METAWORLD_TASKS

# What a worker's step costs with V1 rewards, relative to the mean of the ten: time per step in the
# table of docs/environments.md, plus half a mean step for the policy.
_V1_COST = {
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
# The same with v2 rewards, relative to the mean of the fifty (fastest of four episodes, x86).
_V2_COST = """
hammer 1.22 push-wall 1.04 faucet-close 0.86 push-back 1.03
stick-pull 1.15 handle-press-side 0.90 push 0.97 shelf-place 1.04
window-close 0.93 peg-unplug-side 1.36 assembly 1.26 basketball 0.99
bin-picking 1.11 box-close 1.52 button-press-topdown 0.86 button-press-topdown-wall 0.84
button-press 0.87 button-press-wall 0.88 coffee-button 1.01 coffee-pull 1.07
coffee-push 1.06 dial-turn 0.88 disassemble 1.39 door-close 0.89
door-lock 1.04 door-open 0.92 door-unlock 1.00 hand-insert 0.99
drawer-close 1.00 drawer-open 0.92 faucet-open 0.88 handle-press 0.98
handle-pull-side 0.98 handle-pull 0.97 lever-pull 0.95 peg-insert-side 1.07
pick-place-wall 1.02 pick-out-of-hole 1.01 reach 0.92 pick-place 0.99
plate-slide 0.84 plate-slide-side 0.82 plate-slide-back 0.85 plate-slide-back-side 0.88
soccer 0.95 stick-push 1.10 reach-wall 0.91 sweep-into 0.97
sweep 0.98 window-open 0.89
"""
REWRITTEN = "3.1.1"  # of Meta-World


@cache
def _v2_costs() -> dict[str, float]:
    words = _V2_COST.split()
    return dict(zip(words[::2], map(float, words[1::2]), strict=True))


def step_cost(task: str, config: MetaWorldConfig) -> float:
    return _v2_costs()[task] if config.reward == "v2" else _V1_COST.get(task, _STOCK_COST)


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


def make(task: str, config: MetaWorldConfig, *, visual: bool = False) -> MetaWorldEnv:
    """An environment of the named task, stepped by `lean` where that is tested, else by Meta-World.

    `lean` has the ten tasks with V1 rewards, and all fifty with v2 rewards, which it derives from
    the source of one version of Meta-World. With `visual` the model can be drawn.
    """
    if task in METAWORLD_TASKS:
        from cwbench.envs.metaworld import lean, stock

        fast = rewrites_fit() if config.reward == "v2" else task in CW_TASKS
        if fast:
            return lean.make(task, config, visual=visual)
        return stock.make(task, config)  # its models always can
    close = difflib.get_close_matches(task, METAWORLD_TASKS, n=1, cutoff=0.0)[0]
    raise ValueError(f"unknown task {task!r}; did you mean {close!r}?")


def env_bytes(task: str, config: MetaWorldConfig) -> int:
    """On a slim model, or on Meta-World's own."""
    slim = config.reward == "v2" or task in CW_TASKS
    return (3 if slim else 25) << 20


def drawable(task: str, config: MetaWorldConfig, size: tuple[int, int]) -> Drawable:
    from cwbench.envs.metaworld import drawing

    drawing.choose_backend()
    env = make(task, config, visual=True)
    return Drawable(env, *drawing.renderer(env.sim, size))


SUITE = Suite(
    MetaWorldConfig,
    make,
    sizes,
    step_cost,
    # Scripted policies that solve the ten tasks take 1.5 times as long; training begins at random.
    contact_cost=1.3,
    env_bytes=env_bytes,
    drawable=drawable,
)
