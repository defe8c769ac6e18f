"""SAC of Stable-Baselines3 on HalfCheetah-v5, with the settings of the run it is compared with.

`python scripts/compare_sb3.py train SEED FILE` adds a seed's evaluations to a CSV file;
`python scripts/compare_sb3.py table FILE RESULTS` prints them next to those of cwbench's runs.
docs/gymnasium.md has cwbench's command. Needs the package stable-baselines3.
"""

import csv
import sys
from collections import defaultdict
from pathlib import Path
from statistics import mean, stdev

STEPS, EVALUATE_EVERY, EPISODES = 20_000, 5_000, 5
Returns = dict[int, list[float]]  # step -> mean return of each seed


def train(seed: int, file: Path) -> None:
    import gymnasium
    import torch
    from stable_baselines3 import SAC
    from stable_baselines3.common.evaluation import evaluate_policy

    torch.set_num_threads(1)
    model = SAC(
        "MlpPolicy",
        gymnasium.make("HalfCheetah-v5"),
        learning_rate=1e-3,
        batch_size=128,
        learning_starts=1_000,
        train_freq=50,
        gradient_steps=50,
        policy_kwargs={"net_arch": [128, 128]},
        seed=seed,
    )
    test = gymnasium.make("HalfCheetah-v5")
    test.reset(seed=1_000 + seed)
    for step in range(EVALUATE_EVERY, STEPS + 1, EVALUATE_EVERY):
        model.learn(EVALUATE_EVERY, reset_num_timesteps=False)
        found, _ = evaluate_policy(model, test, EPISODES, deterministic=False, warn=False)
        with file.open("a", newline="") as table:
            csv.writer(table).writerow([seed, step, found])


def of_sb3(file: Path) -> Returns:
    returns: Returns = defaultdict(list)
    with file.open(newline="") as table:
        for _, step, value in sorted(csv.reader(table)):
            returns[int(step)].append(float(value))
    return returns


def of_cwbench(results: Path) -> Returns:
    returns: Returns = defaultdict(list)
    for file in sorted(results.glob("segments/*cheetah*/evals.csv")):
        with file.open(newline="") as table:
            for row in csv.DictReader(table):
                returns[int(row["step"])].append(float(row["mean_return"]))
    return returns


def cell(values: list[float]) -> str:
    return f"{mean(values):,.0f} ± {stdev(values):,.0f} ({', '.join(f'{v:,.0f}' for v in values)})"


def table(file: Path, results: Path) -> None:
    ours, theirs = of_cwbench(results), of_sb3(file)
    print("| step | cwbench | Stable-Baselines3 |\n| - | - | - |")
    for step in sorted(ours.keys() & theirs.keys()):
        print(f"| {step:,} | {cell(ours[step])} | {cell(theirs[step])} |")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["train", seed, file]:
            train(int(seed), Path(file))
        case ["table", file, results]:
            table(Path(file), Path(results))
        case ["-h" | "--help"]:
            print(__doc__)
        case _:
            sys.exit(__doc__)
