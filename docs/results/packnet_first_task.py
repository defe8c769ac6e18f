"""Tables of packnet-first-task.md: runs in packnet-first-task.tar.gz, and the reference bank."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pairs import from_scratch
from scipy import stats

from cwbench.store.merge import opened

ARCHIVE = Path(__file__).with_name("packnet-first-task.tar.gz")
CLIPPED, SMALL, PLAIN = "clipped", "clipped, 1e-12", "plain SAC"
RUNS = {CLIPPED: "Control-1", SMALL: "finetuning-1"}  # of plain SAC with clipping
COMPARED = (
    ("push", 190_000, 240_000, CLIPPED, PLAIN),
    ("window-close", 190_000, 240_000, CLIPPED, PLAIN),
    ("push", 90_000, 180_000, CLIPPED, PLAIN),
    ("push", 90_000, 180_000, SMALL, PLAIN),
    ("push", 90_000, 180_000, SMALL, CLIPPED),
    ("push", 0, 90_000, SMALL, CLIPPED),
)
# Updates after pruning, first and last.
PHASES = {"after pruning": (0, 0), "early": (5_000, 25_000), "late": (50_000, 95_000)}

TITLES = {"Control": "control", "packnet": "PackNet"}


def read(results: Path) -> pd.DataFrame:
    """Success in each phase: one row per task, method and seed."""
    rows = []
    for folder in sorted(results.glob("segments/*")):
        found = re.match(r"(packnet|Control)-1-(.*)-s(\d+)-", folder.name)
        if not found:
            continue
        evals, log = (pd.read_csv(folder / f"{name}.csv") for name in ("evals", "retraining"))
        before = evals["successes"].iloc[-6:-1].sum() / evals["episodes"].iloc[-6:-1].sum()
        row = {"task": found[2], "method": found[1], "seed": int(found[3]), "before": before}
        for name, (first, last) in PHASES.items():
            part = log[(log["updates"] >= first) & (log["updates"] <= last)]
            row[name] = part["successes"].sum() / part["episodes"].sum()
        rows.append(row)
    return pd.DataFrame(rows)


def interval(values: NDArray[np.float64]) -> str:
    """Mean and 90 % t interval."""
    half = stats.t.ppf(0.95, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
    return f"{values.mean():.2f} [{values.mean() - half:.2f}, {values.mean() + half:.2f}]"


def rates(evals: pd.DataFrame, after: int, until: int) -> NDArray[np.float64]:
    """Success of each seed in some steps."""
    inside = evals[(evals["step"] > after) & (evals["step"] <= until)].groupby("seed").sum()
    return (inside["successes"] / inside["episodes"]).to_numpy()


def clipping(results: Path) -> None:
    """Plain SAC on one task: with clipping, with clipping and a small epsilon, without."""
    for task, after, until, *settings in COMPARED:
        pair = (evaluations(results, setting, task) for setting in settings)
        numbers = compared(*(rates(evals, after, until) for evals in pair))
        print(f"| {task} | {after:,} to {until:,} | {'; '.join(settings)} | {numbers} |")


def evaluations(results: Path, setting: str, task: str) -> pd.DataFrame:
    if setting == PLAIN:
        scratch = from_scratch()
        return scratch[scratch["task"] == task]
    folders = sorted(results.glob(f"segments/{RUNS[setting]}-{task}-*"))
    tables = [pd.read_csv(folder / "evals.csv") for folder in folders]
    return pd.concat(table.assign(seed=seed) for seed, table in enumerate(tables))


def compared(first: NDArray[np.float64], second: NDArray[np.float64]) -> str:
    """Means, difference with its 90 % t interval (Welch), p of the permutation test."""
    low, high = stats.ttest_ind(first, second, equal_var=False).confidence_interval(0.9)
    gap = first.mean() - second.mean()
    test = stats.permutation_test((first, second), lambda a, b, axis: a.mean(axis) - b.mean(axis))
    means = f"{first.mean():.2f} | {second.mean():.2f}"
    return f"{means} | {gap:+.2f} [{low:+.2f}, {high:+.2f}] | {test.pvalue:.2f}"


def main() -> None:
    with opened(ARCHIVE) as unpacked:
        show_phases(read(unpacked))
        clipping(unpacked)


def show_phases(table: pd.DataFrame) -> None:
    for (task, method), group in table.groupby(["task", "method"]):
        cells = [interval(group[name].to_numpy()) for name in ("before", *PHASES)]
        change = interval((group["late"] - group["early"]).to_numpy())
        print(f"| {task} | {TITLES[str(method)]} | {' | '.join(cells)} | {change} |")


if __name__ == "__main__":
    main()
