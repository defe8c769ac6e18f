"""Tables of cw3.md, from cw3.csv, the runs in cw3.tar.gz and the reference bank."""

from collections.abc import Iterable
from pathlib import Path

import pandas as pd
from pairs import compared, from_scratch, rates

import cwbench
from cwbench.reports.tables.paper_numbers import published
from cwbench.store.merge import opened

FOLDER = Path(__file__).parent
METHODS = {  # by their columns in cw3.csv
    "finetuning": "Fine-tuning",
    "ewc": "EWC",
    "perfect_memory": "PM",
    "recall": "RECALL",
}
NAMES = {
    "finetuning": "fine-tuning",
    "ewc": "EWC",
    "perfect_memory": "Perfect Memory",
    "recall": "RECALL",
    "scratch": "from scratch",
}
AVERAGES = [("recall", "ewc"), ("recall", "perfect_memory"), ("recall", "finetuning")]
AVERAGES += [("ewc", "perfect_memory"), ("perfect_memory", "finetuning"), ("ewc", "finetuning")]
LATER = [(method, "scratch") for method in METHODS]
LATER += [("recall", "perfect_memory"), ("recall", "finetuning"), ("ewc", "finetuning")]
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
    table = table.rename(columns=lambda label: label.replace("-", "_"))[list(METHODS)]
    return table.join(rates(from_scratch()).rename("scratch"), on="task")


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
    for sequence, position, task, *reached in table.reset_index().itertuples(index=False):
        print(f"| {sequence.upper()} | {position + 1} | {task} | {cells(reached)} |")
    average = ours["Average Performance"].drop("mean").unstack()
    for first, second in AVERAGES:
        numbers = compared(average[METHODS[first]], average[METHODS[second]])
        print(f"| {NAMES[first]}, {NAMES[second]} | {numbers} |")
    later = table[table.index.get_level_values("position") > 0].groupby("sequence").mean()
    for first, second in LATER:
        print(f"| {NAMES[first]}, {NAMES[second]} | {compared(later[first], later[second])} |")


if __name__ == "__main__":
    main()
