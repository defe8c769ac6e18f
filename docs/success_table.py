"""How often Meta-World's scripted policies solve the ten tasks, counted in four ways.

python docs/success_table.py [EPISODES [TASK...]] prints the table of docs/success.md, and
python docs/success_table.py RESULTS.tar.gz the one of policies trained with SAC.
"""

import sys
import warnings
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from metaworld.policies import ENV_POLICY_MAP

import cwbench
from cwbench.envs.metaworld import make
from cwbench.envs.metaworld.env import MetaWorldEnv
from cwbench.spec.config import MetaWorldConfig
from cwbench.spec.statistics import SUCCESS_COLUMNS
from cwbench.spec.tasks import CW_TASKS
from cwbench.store.merge import opened

warnings.filterwarnings("ignore", r"Constant\(s\) may be too high", UserWarning)
NOISE = (0.0, 0.5)  # standard deviation of the normal noise added to actions
COUNTS = ("v1-any", "v1-last", "v3-any", "v3-last")
STAGES = {"50,000 to 100,000": (50_000, 100_000), "210,000 to 250,000": (210_000, 250_000)}


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


def scripted(episodes: int, *tasks: str) -> None:
    row(["task", *COUNTS, *(f"{name}, noise" for name in COUNTS)])
    row("-" * 9)
    for task in tasks or CW_TASKS:
        env = make(task, MetaWorldConfig(obs="full39"))
        rates = [np.mean([episode(env, n, seed) for seed in range(episodes)], 0) for n in NOISE]
        row([task, *(f"{rate:.2f}" for rate in np.concatenate(rates))])


def trained(archive: Path) -> None:
    """Evaluations of the task in training within each stage, all runs together."""
    with opened(archive) as results:
        found = cwbench.load_runs(results).evaluations
    found = found[found["training_position"] == found["position"]].drop_duplicates(
        ["segment", "segment_step"]
    )
    row(["task", "steps", "episodes", *COUNTS])
    row("-" * 7)
    for task, own in found.groupby("task"):
        for title, (first, last) in STAGES.items():
            inside = own[own["segment_step"].between(first, last)]
            count = inside["episodes"].sum()
            solved = [inside[SUCCESS_COLUMNS[name]].sum() / count for name in COUNTS]
            row([str(task), title, str(count), *(f"{share:.2f}" for share in solved)])


if __name__ == "__main__":
    if len(sys.argv) == 2 and Path(sys.argv[1]).exists():
        trained(Path(sys.argv[1]))
    else:
        scripted(int((*sys.argv, "100")[1]), *sys.argv[2:])
