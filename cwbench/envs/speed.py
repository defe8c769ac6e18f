"""How many steps a second one core makes, Meta-World's environments against ours."""

from collections.abc import Callable, Sequence
from time import process_time
from typing import Any

import numpy as np

from cwbench.envs.metaworld import make
from cwbench.envs.metaworld.env import ACTION_DIM, CW12, Vector
from cwbench.envs.metaworld.stock import make_sim, stock_class
from cwbench.spec.config import MetaWorldConfig

Step = Callable[[Vector], object]


def bench(tasks: Sequence[str], seconds: float = 4.0) -> dict[str, Any]:
    """Steps per second of CPU time with random actions, one reset per episode included.

    Whole episodes of the two take turns in this process until both together have used `seconds`
    per task: the ratio then holds on a shared machine too.
    """
    table: dict[str, Any] = {task: _compare(task, seconds) for task in tasks}
    table["mean_ratio"] = float(np.mean([table[task]["ratio"] for task in tasks]))
    return table


def _compare(task: str, seconds: float) -> dict[str, float]:
    config = MetaWorldConfig()
    rng = np.random.default_rng(0)
    env = make(task, config)
    stock = make_sim(stock_class(task), "v1", config.horizon)
    steps, stock_time, our_time = 0, 0.0, 0.0

    env.reset(rng)  # the first settles the hand for all others
    while stock_time + our_time < seconds:
        actions = rng.uniform(-1, 1, (config.horizon, ACTION_DIM)).astype(np.float32)
        our_time += _episode(lambda: env.reset(rng), env.step, actions)
        stock._last_rand_vec = env.save()["rand_vec"]  # the same episode
        stock_time += _episode(stock.reset, lambda a: stock.step(a)[0][CW12], actions)
        steps += config.horizon
    return {
        "stock": steps / stock_time,
        "ours": steps / our_time,
        "ratio": stock_time / our_time,
    }


def _episode(reset: Callable[[], object], step: Step, actions: Vector) -> float:
    """Seconds of CPU time for a reset and one step per action."""
    start = process_time()
    reset()
    for action in actions:
        step(action)
    return process_time() - start
