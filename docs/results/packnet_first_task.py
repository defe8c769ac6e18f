"""Tables of packnet-first-task.md, from the runs in packnet-first-task.tar.gz."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from cwbench.store.merge import opened

ARCHIVE = Path(__file__).with_name("packnet-first-task.tar.gz")
# Updates after pruning, first and last.
PHASES = {"after pruning": (0, 0), "early": (5_000, 25_000), "late": (50_000, 95_000)}

TITLES = {"Control": "control", "packnet": "PackNet"}


def read(results: Path) -> pd.DataFrame:
    """Success in each phase: one row per task, method and seed."""
    rows = []
    for folder in sorted(results.glob("segments/*")):
        found = re.match(r"(packnet|Control)-1-(.*)-s(\d+)-", folder.name)
        assert found
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


def main() -> None:
    with opened(ARCHIVE) as unpacked:
        table = read(unpacked)
    for (task, method), group in table.groupby(["task", "method"]):
        cells = [interval(group[name].to_numpy()) for name in ("before", *PHASES)]
        change = interval((group["late"] - group["early"]).to_numpy())
        print(f"| {task} | {TITLES[str(method)]} | {' | '.join(cells)} | {change} |")


if __name__ == "__main__":
    main()
