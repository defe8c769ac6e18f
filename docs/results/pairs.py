"""Tables of pairs-recall.md, from the runs in pairs-recall.tar.gz and the reference bank."""

from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

import cwbench
from cwbench.store.merge import opened

ARCHIVE = Path(__file__).with_name("pairs-recall.tar.gz")
REFERENCE = Path(cwbench.__file__).parent / "reports" / "data" / "reference" / "compact.csv.gz"
WINDOW = 50_000  # steps that are averaged


def second_tasks() -> pd.DataFrame:
    """Success while second tasks are learned: task, step, rate."""
    with opened(ARCHIVE) as results:
        found = cwbench.load_runs(results).evaluations
    own = found[(found["training_position"] == 1) & (found["position"] == 1)]
    columns = {"task": own["task"], "step": own["segment_step"], "rate": own["success_rate"]}
    return pd.DataFrame(columns)


def from_scratch() -> pd.DataFrame:
    bank = pd.read_csv(REFERENCE)
    return bank.assign(rate=bank["successes"] / bank["episodes"])


def rates(found: pd.DataFrame, end: int) -> pd.Series:
    """Mean success of each task in the window that ends at a step."""
    inside = found[(found["step"] > end - WINDOW) & (found["step"] <= end)]
    return inside.groupby("task")["rate"].mean()


def main() -> None:
    second, scratch = second_tasks(), from_scratch()
    ends = range(WINDOW, 250_001, WINDOW)
    for end in ends:
        ours, alone = rates(second, end), rates(scratch, end)
        gap = ours - alone
        margin = stats.t.ppf(0.95, len(gap) - 1) * gap.std(ddof=1) / np.sqrt(len(gap))
        mean, p = gap.mean(), stats.wilcoxon(gap).pvalue
        print(
            f"| {end - WINDOW:,} to {end:,} | {ours.mean():.2f} | {alone.mean():.2f} | "
            f"{mean:+.2f} [{mean - margin:+.2f}, {mean + margin:+.2f}] | {p:.3f} |"
        )
    table = pd.DataFrame({"RECALL": rates(second, ends[-1]), "scratch": rates(scratch, ends[-1])})
    for task, row in table.iterrows():
        print(f"| {task} | {row['RECALL']:.2f} | {row['scratch']:.2f} |")


if __name__ == "__main__":
    main()
