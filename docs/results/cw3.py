"""Tables of cw3.md, from cw3.csv, the runs in cw3.tar.gz and the reference bank."""

from collections.abc import Iterable
from pathlib import Path

import pandas as pd
from pairs import compared, from_scratch, rates

import cwbench
from cwbench.reports.tables.formats import number
from cwbench.reports.tables.paper_numbers import published
from cwbench.store.merge import opened

FOLDER = Path(__file__).parent
METHODS = {  # by their columns in cw3.csv
    "finetuning": "Fine-tuning",
    "ewc": "EWC",
    "packnet": "PackNet",
    "clonex": "ClonEx",
    "perfect_memory": "PM",
    "recall": "RECALL",
}
NAMES = {
    "finetuning": "fine-tuning",
    "ewc": "EWC",
    "packnet": "PackNet",
    "clonex": "ClonEx",
    "perfect_memory": "Perfect Memory",
    "recall": "RECALL",
    "scratch": "from scratch",
}
AVERAGES = [("clonex", other) for other in METHODS if other != "clonex"]
AVERAGES += [("recall", other) for other in ("packnet", "ewc", "perfect_memory", "finetuning")]
AVERAGES += [("packnet", other) for other in ("ewc", "perfect_memory", "finetuning")]
AVERAGES += [("ewc", "perfect_memory"), ("ewc", "finetuning"), ("perfect_memory", "finetuning")]
LATER = [(method, "scratch") for method in METHODS]
LATER += [("clonex", "recall"), ("recall", "perfect_memory"), ("ewc", "finetuning")]
FIRST = [("packnet", "scratch"), ("packnet", "finetuning"), ("finetuning", "scratch")]
BUDGETS = range(50_000, 250_001, 50_000)  # steps of a task
METRICS = {
    "average_performance": "Average Performance",
    "forgetting": "Forgetting",
    "forward_transfer": "Forward Transfer",
}
AFTER = 200_000  # steps of a task; the evaluations that follow are averaged, as in reports


def headline() -> pd.Series:
    """Ours by metric, row and method."""
    table = pd.read_csv(FOLDER / "cw3.csv", comment="#", dtype={"row": str})
    return table.set_index(["block", "row", "column"])["value"]


def printed() -> dict[tuple[str, str, str], float]:
    """The paper's by metric, row and method."""
    return {(c.metric, c.row, c.column): c.value for c in published() if c.table == "cw3"}


def in_training() -> pd.DataFrame:
    """Evaluations of the task in training."""
    with opened(FOLDER / "cw3.tar.gz") as results:
        found = cwbench.load_runs(results).evaluations
    found = found.assign(label=found["label"].str.replace("-", "_"))
    return found[found["training_position"] == found["position"]]


def learned(own: pd.DataFrame) -> pd.DataFrame:
    """Success on every task at the end of its own training, and from scratch."""
    own = own[own["segment_step"] > AFTER]
    table = own.groupby(["sequence", "position", "task", "label"])["success_rate"].mean().unstack()
    return table[list(METHODS)].join(rates(from_scratch()).rename("scratch"), on="task")


def first_tasks(own: pd.DataFrame) -> pd.DataFrame:
    """Success on first tasks before the last evaluation, which comes after PackNet's pruning."""
    end = own["segment_step"].max()
    before = own[(own["position"] == 0) & own["segment_step"].between(AFTER, end, "neither")]
    table = before.groupby(["task", "label"])["success_rate"].mean().unstack()
    scratch = from_scratch()
    inside = scratch[scratch["step"].between(AFTER, end, "neither")]
    return table.join(inside.groupby("task")["rate"].mean().rename("scratch"))


def on_the_way(own: pd.DataFrame) -> pd.DataFrame:
    """Success on each sequence's second and third tasks in each fifth of their training."""
    later = own[own["position"] > 0]
    fifth = pd.cut(later["segment_step"], [0, *BUDGETS], labels=list(BUDGETS))
    table = later.groupby([fifth, "sequence", "label"], observed=True)["success_rate"].mean()
    return table.unstack()[list(METHODS)]


def cells(values: Iterable[float]) -> str:
    return " | ".join(map(number, values))


def main() -> None:
    ours, paper = headline(), printed()
    for metric, block in METRICS.items():
        for row in [*map(str, range(1, 9)), "mean"]:
            pairs = (
                f"{number(paper[metric, row, method])} / {number(ours[block, row, column])}"
                for method, column in METHODS.items()
            )
            print(f"| {row} | {' | '.join(pairs)} |")
    own = in_training()
    table = learned(own)
    for sequence, position, task, *reached in table.reset_index().itertuples(index=False):
        print(f"| {sequence.upper()} | {position + 1} | {task} | {cells(reached)} |")
    average = ours["Average Performance"].drop("mean").unstack()
    for first, second in AVERAGES:
        numbers = compared(average[METHODS[first]], average[METHODS[second]])
        print(f"| {NAMES[first]}, {NAMES[second]} | {numbers} |")
    later = table[table.index.get_level_values("position") > 0].groupby("sequence").mean()
    for first, second in LATER:
        print(f"| {NAMES[first]}, {NAMES[second]} | {compared(later[first], later[second])} |")
    start = first_tasks(own)
    for first, second in FIRST:
        print(f"| {NAMES[first]}, {NAMES[second]} | {compared(start[first], start[second])} |")
    way = on_the_way(own)
    for steps in BUDGETS:
        found = way.loc[steps]
        numbers = compared(found["recall"], found["clonex"]).split(" | ", 2)[2]
        when = f"{steps - BUDGETS.step:,} to {steps:,}"
        print(f"| {when} | {cells(found[method].mean() for method in METHODS)} | {numbers} |")


if __name__ == "__main__":
    main()
