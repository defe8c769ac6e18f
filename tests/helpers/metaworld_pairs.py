"""Meta-World's own environments and ours, side by side."""

import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from cwbench.envs.metaworld.env import ACTION_DIM
from cwbench.envs.metaworld.stock import show_goal


def stock_env(task: str, version: str) -> Any:
    from metaworld.env_dict import ENV_CLS_MAP

    env = ENV_CLS_MAP[f"{task}-v3"](reward_function_version=version)
    show_goal(env)
    env.max_path_length = 200
    return env


def expert(task: str) -> Callable[[Any], Any]:
    """Meta-World's scripted policy."""
    from metaworld.policies import ENV_POLICY_MAP

    policy = ENV_POLICY_MAP[f"{task}-v3"]()

    def act(obs: Any) -> Any:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", r"Constant\(s\) may be too high", UserWarning)
            return np.clip(policy.get_action(obs), -1, 1)

    return act


def noisy_expert(task: str, rng: np.random.Generator) -> Callable[[Any], Any]:
    act = expert(task)
    return lambda obs: (act(obs) + rng.normal(0, 0.2, ACTION_DIM)).astype(np.float32)


def episodes(
    stock: Any, env: Any, policies: Iterable[Callable[[Any], Any]], rng: np.random.Generator
) -> Iterator[tuple[Any, Any, Any, Any]]:
    """Run both side by side, one episode per policy; yields (stock's obs39, info), our step."""
    for policy in policies:
        first = env.reset(rng)
        stock._last_rand_vec = env.save()["rand_vec"]
        obs, _ = stock.reset()
        yield obs, None, None, (first, None, None, None)
        for _ in range(200):
            action = policy(obs)
            obs, reward, _, truncated, info = stock.step(action)
            ours = env.step(action)
            assert ours[4] == truncated
            yield obs, reward, bool(info["success"]), ours
