"""Steps per second of Meta-World's tasks, ours against EnvPool's."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import lru_cache
from multiprocessing import get_context
from statistics import fmean
from time import perf_counter, process_time
from typing import Any

import numpy as np

from cwbench.envs import Env, make
from cwbench.spec.config import MetaWorldConfig
from cwbench.spec.errors import UserError
from cwbench.spec.extras import is_installed

HORIZON, ENVS = 200, 16
STEPS = HORIZON * ENVS  # of a turn
ACTIONS = np.random.default_rng(0).uniform(-1, 1, (HORIZON, ENVS, 4)).astype(np.float32)
Seconds = tuple[float, float]  # by the clock, of the CPU
NOTES = (
    "Both: v2 rewards, 39 numbers, random actions, episodes of 200 steps, resets included.",
    "EnvPool: 16 environments on one thread; it has a MuJoCo of its own (3.6 in 1.2.5; ours: 3.3),",
    "hides the goal by default (here it shows it, as ours does), and cannot save its state.",
    "CPU time counts both of EnvPool's threads, the one that waits too.",
)


def compare_environments(tasks: Sequence[str], seconds: float) -> Iterator[dict[str, Any]]:
    """A row per task: steps per second in the fastest turn, by the clock and in CPU time.

    Ours and EnvPool have a process each, since each loads its own MuJoCo. They take turns, at least
    two each, until both together have used `seconds` for a task.
    """
    if not is_installed("envpool"):
        raise UserError("EnvPool is not installed: pip install 'cwbench[bench]'")
    spawn = get_context("spawn")
    with ProcessPoolExecutor(1, spawn) as ours, ProcessPoolExecutor(1, spawn) as envpool:
        for task in tasks:
            contenders = [
                lambda task=task: ours.submit(our_turn, task).result(),
                lambda task=task: envpool.submit(pool_turn, task).result(),
            ]
            yield {"task": task, **speeds(take_turns(contenders, seconds))}


def take_turns(contenders: Sequence[Callable[[], Seconds]], seconds: float) -> list[list[Seconds]]:
    """What each took in each turn."""
    turns: list[list[Seconds]] = []
    while len(turns) < 2 or sum(clock for turn in turns for clock, _ in turn) < seconds:
        turns.append([contender() for contender in contenders])
    return turns


def speeds(turns: list[list[Seconds]]) -> dict[str, float]:
    """Steps per second of ours and EnvPool's fastest turns, and their ratios."""
    (ours, our_cpu), (pool, pool_cpu) = (STEPS / np.min(turns, axis=0)).tolist()
    return {
        "ours": ours,
        "envpool": pool,
        "ratio": ours / pool,
        "ours_cpu": our_cpu,
        "envpool_cpu": pool_cpu,
        "ratio_cpu": our_cpu / pool_cpu,
    }


def summarise(rows: Sequence[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Mean and minimum of the ratios over tasks."""
    ratios = {key: [row[key] for row in rows] for key in ("ratio", "ratio_cpu")}
    return {
        "mean": {key: fmean(values) for key, values in ratios.items()},
        "minimum": {key: min(values) for key, values in ratios.items()},
    }


def our_turn(task: str) -> Seconds:
    """Sixteen episodes, one after another."""
    env, rng = _our_env(task), np.random.default_rng(0)
    start = perf_counter(), process_time()
    for number in range(ENVS):
        env.reset(rng)
        for action in ACTIONS[:, number]:
            env.step(action)
    return perf_counter() - start[0], process_time() - start[1]


def pool_turn(task: str) -> Seconds:
    """Sixteen episodes at once in EnvPool."""
    pool = _pool(task)
    start = perf_counter(), process_time()
    pool.reset()
    for actions in ACTIONS:
        pool.step(actions)
    return perf_counter() - start[0], process_time() - start[1]


@lru_cache(1)
def _our_env(task: str) -> Env:
    env = make(task, MetaWorldConfig(obs="full39", reward="v2", horizon=HORIZON))
    env.reset(np.random.default_rng(0))  # the first settles the hand for all others
    return env


@lru_cache(1)
def _pool(task: str) -> Any:
    import envpool

    name = task.title().replace("-", "")
    return envpool.make(
        f"MetaWorld/{name}-v3",
        env_type="gymnasium",
        num_envs=ENVS,
        num_threads=1,
        max_episode_steps=HORIZON,
        partially_observable=False,
        seed=0,
    )
