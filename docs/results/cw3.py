"""Tables of cw3.md, from cw3.csv, the runs in cw3.tar.gz and the reference bank."""

from collections.abc import Iterable
from pathlib import Path

import pandas as pd
from scipy import stats

import cwbench
from cwbench.reports.tables.paper_numbers import published
from cwbench.store.merge import opened

FOLDER = Path(__file__).parent
REFERENCE = Path(cwbench.__file__).parent / "reports" / "data" / "reference" / "compact.csv.gz"
METHODS = {"finetuning": "Fine-tuning", "ewc": "EWC"}  # by their columns in cw3.csv
METRICS = {"average_performance": "Average Performance", "forgetting": "Forgetting"}
AFTER = 200_000  # steps of a task; the evaluations that follow are averaged, as in reports


def headline() -> pd.Series:
    """Ours by metric, row and method."""
    table = pd.read_csv(FOLDER / "cw3.csv", comment="#", dtype={"row": str})
    return table.set_index(["block", "row", "column"])["value"]


def printed() -> dict[tuple[str, str, str], float]:
    """The paper's by metric, row and method."""
    return {(c.metric, c.row, c.column): c.value for c in published() if c.table == "cw3"}


def learned() -> pd.DataFrame:
    """Success on every task at the end of its own training, and from scratch."""
    with opened(FOLDER / "cw3.tar.gz") as results:
        found = cwbench.load_runs(results).evaluations
    own = found[found["training_position"] == found["position"]]
    own = own[own["segment_step"] > AFTER]
    table = own.groupby(["sequence", "position", "task", "label"])["success_rate"].mean().unstack()
    bank = pd.read_csv(REFERENCE)
    bank = bank[bank["step"] > AFTER]
    scratch = (bank["successes"] / bank["episodes"]).groupby(bank["task"]).mean()
    return table[list(METHODS)].join(scratch.rename("scratch"), on="task")


def compared(ours: pd.Series, other: pd.Series) -> str:
    """Two means over sequences, their difference with its 90 % t interval, Wilcoxon's test."""
    gap = (ours - other).to_numpy()
    margin = stats.t.ppf(0.95, len(gap) - 1) * stats.sem(gap)
    mean, p = gap.mean(), stats.wilcoxon(gap).pvalue
    interval = f"{mean:+.2f} [{mean - margin:+.2f}, {mean + margin:+.2f}]"
    return f"{ours.mean():.2f} | {other.mean():.2f} | {interval} | {p:.3f}"


def cells(values: Iterable[float]) -> str:
    return " | ".join(f"{value:.2f}" for value in values)


def main() -> None:
    ours, paper = headline(), printed()
    for row in [*map(str, range(1, 9)), "mean"]:
        pairs = (
            f"{paper[metric, row, method]:.2f} / {ours[block, row, column]:.2f}"
            for metric, block in METRICS.items()
            for method, column in METHODS.items()
        )
        print(f"| {row} | {' | '.join(pairs)} |")
    table = learned()
    for sequence, position, task, *rates in table.reset_index().itertuples(index=False):
        print(f"| {sequence.upper()} | {position + 1} | {task} | {cells(rates)} |")
    later = table[table.index.get_level_values("position") > 0].groupby("sequence").mean()
    print(f"| fine-tuning, from scratch | {compared(later['finetuning'], later['scratch'])} |")
    print(f"| EWC, from scratch | {compared(later['ewc'], later['scratch'])} |")
    print(f"| EWC, fine-tuning | {compared(later['ewc'], later['finetuning'])} |")


if __name__ == "__main__":
    main()
