"""Tables of million.md: runs of a million steps next to those of 250,000."""

from pathlib import Path

import pandas as pd
from single_tasks import ENDS, ends

import cwbench
from cwbench.store.merge import opened

FOLDER = Path(__file__).parent
TASKS = ("push", "window-close", "hammer")
METHODS = {"clonex": "ClonEx", "recall": "RECALL"}
SHORT, LONG = 250_000, 1_000_000


def evaluations(archive: str) -> pd.DataFrame:
    """Of the two methods on CW3-1, or of single tasks: rate by Meta-World 3's test, v1 by V1's."""
    with opened(FOLDER / f"{archive}.tar.gz") as results:
        found = cwbench.load_runs(results).evaluations
    on_cw3_1 = (found["sequence"] == "cw3-1") & found["label"].isin(METHODS)
    kept = found[on_cw3_1 | found["sequence"].str.startswith("single-")]
    return kept.assign(
        archive=archive,
        step=kept["segment_step"],
        rate=kept["success_rate"],
        v1=kept["v1_any"] / kept["episodes"],
    )


def at_the_end(found: pd.DataFrame, budget: int, column: str) -> str:
    """Mean over tasks after the last one: of all runs, with the lowest and the highest."""
    last = found[(found["training_position"] == 2) & (found["step"] > 0.8 * budget)]
    runs = last.groupby(["archive", "seed"])[column].mean().dropna()
    spread = f" ({runs.min():.2f} to {runs.max():.2f}, n = {len(runs)})" if len(runs) > 1 else ""
    return f"{runs.mean():.2f}{spread}"


def learned(found: pd.DataFrame, task: str, column: str = "rate") -> str:
    """Success on a task in training, in the last fifth of each budget."""
    own = found[(found["training_position"] == found["position"]) & (found["task"] == task)]
    return " | ".join(f"{ends(own, budget, column).mean():.2f}" for budget in ENDS)


def main() -> None:
    long, alone = evaluations("million"), evaluations("single-tasks")
    short = pd.concat([evaluations("cw3-1"), evaluations("cw3")])
    of = {label: [found[found["label"] == label] for found in (short, long)] for label in METHODS}
    for column, test in {"rate": "Meta-World 3's", "v1": "V1's"}.items():
        for label, (few, many) in of.items():
            cells = [at_the_end(few, SHORT, column), at_the_end(many, LONG, column)]
            print(f"| {METHODS[label]}, by {test} test | {' | '.join(cells)} |")
    for label, (_, many) in of.items():
        last = many[(many["training_position"] == 2) & (many["step"] > 0.8 * LONG)]
        for column, test in {"rate": "Meta-World 3's", "v1": "V1's"}.items():
            means = last.groupby("task")[column].mean()
            cells = [f"{means[task]:.2f}" for task in TASKS]
            print(f"| {METHODS[label]}, by {test} test | {' | '.join(cells)} |")
    for task in TASKS:
        for label, (_, many) in of.items():
            print(f"| {task} | {METHODS[label]} | {learned(many, task)} |")
        print(f"| {task} | from scratch | {learned(alone, task)} |")


if __name__ == "__main__":
    main()
