"""How often Meta-World's scripted policies solve the ten tasks, counted in four ways.

python docs/success_table.py [EPISODES [TASK...]] prints the table of docs/success.md.
"""

import sys
import warnings
from collections.abc import Iterable

import numpy as np
from metaworld.policies import ENV_POLICY_MAP

from cwbench.envs.metaworld import make
from cwbench.envs.metaworld.env import MetaWorldEnv
from cwbench.spec.config import MetaWorldConfig
from cwbench.spec.tasks import CW_TASKS

warnings.filterwarnings("ignore", r"Constant\(s\) may be too high", UserWarning)
NOISE = (0.0, 0.5)  # standard deviation of the normal noise added to actions


def episode(env: MetaWorldEnv, noise: float, seed: int) -> list[bool]:
    """Solved by V1's test at any step, at the last; by V3's at any step, at the last."""
    rng = np.random.default_rng([seed, CW_TASKS.index(env.task)])
    policy = ENV_POLICY_MAP[f"{env.task}-v3"]()
    obs, steps = env.reset(rng), []
    for _ in range(env.config.horizon):
        action = np.clip(policy.get_action(obs.astype(float)), -1, 1) + rng.normal(0, noise, 4)
        obs = env.step(action)[0]
        tests = env.success_tests()
        steps.append((tests["v1"], tests["v3"]))
    return [flag for test in zip(*steps, strict=True) for flag in (any(test), test[-1])]


def row(cells: Iterable[str]) -> None:
    print(f"| {' | '.join(cells)} |", flush=True)


def main(episodes: int, *tasks: str) -> None:
    counts = ("v1-any", "v1-last", "v3-any", "v3-last")
    row(["task", *counts, *(f"{name}, noise" for name in counts)])
    row("-" * 9)
    for task in tasks or CW_TASKS:
        env = make(task, MetaWorldConfig(obs="full39"))
        rates = [np.mean([episode(env, n, seed) for seed in range(episodes)], 0) for n in NOISE]
        row([task, *(f"{rate:.2f}" for rate in np.concatenate(rates))])


if __name__ == "__main__":
    main(int((*sys.argv, "100")[1]), *sys.argv[2:])
