"""Tables of ablation.md, from the runs in ablation.tar.gz, cw3.tar.gz and cw3-1.tar.gz."""

from collections.abc import Sequence
from itertools import product
from pathlib import Path

import pandas as pd
from cw3 import AFTER, BUDGETS, NAMES
from pairs import compared

import cwbench
from cwbench.reports.tables.formats import number
from cwbench.store.merge import opened

FOLDER = Path(__file__).parent
SEQUENCES = ("cw3-1", "cw3-2", "cw3-7")
RELEASE = "recall (popart-stats=normalized)"
SMALL = "recall (lambda=0.04)"
FRESH = "recall (best-return=False)"
VARIANTS = {
    "recall": NAMES["recall"],
    SMALL: "weight of 0.04",
    FRESH: "no best-return",
    RELEASE: "release's statistics",
    "recall-pd": "unnormalised",
    "recall-tn": "undistilled",
    "recall-none": "neither",
}
LABELS = [*VARIANTS, "clonex"]
COMPARED = [
    (RELEASE, "recall"),
    ("recall-tn", "recall"),
    ("recall-pd", "recall"),
    (RELEASE, "recall-tn"),
    (RELEASE, "recall-pd"),
    ("recall-tn", "recall-none"),
    ("recall-pd", "recall-none"),
    (SMALL, "recall"),
    (FRESH, "recall"),
    (SMALL, "recall-tn"),
    (SMALL, RELEASE),
]
PARTS = [("recall-tn", "recall-none"), (RELEASE, "recall-pd"), ("recall-tn", "recall")]
SETTINGS = [(SMALL, "recall"), (FRESH, "recall")]
TWICE = ("recall", "clonex")  # trained on CW3-1 in cw3-1.tar.gz too
RUN = ["sequence", "seed"]
LOSSES = ["penalty", "actor_loss", "value_std"]
EIGHT = {"recall": "RECALL", RELEASE: "release's statistics", "clonex": "ClonEx"}
ON_EIGHT = [(RELEASE, "recall"), ("clonex", RELEASE), ("clonex", "recall")]
PEG = ("recall", SMALL, FRESH, RELEASE, "recall-tn")


def tables() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Evaluations and training statistics of all runs."""
    loaded = []
    for archive in ("cw3", "ablation"):
        with opened(FOLDER / f"{archive}.tar.gz") as results:
            loaded.append(cwbench.load_runs(results))
    return pd.concat([runs.evaluations for runs in loaded]), pd.concat([r.training for r in loaded])


def of_three(found: pd.DataFrame) -> pd.DataFrame:
    """Of the variants and ClonEx on the three triplets."""
    return found[found["sequence"].isin(SEQUENCES) & found["label"].isin(LABELS)]


def with_earlier_runs(found: pd.DataFrame) -> pd.DataFrame:
    """The same with the first training of CW3-1 by RECALL and ClonEx instead of the second."""
    with opened(FOLDER / "cw3-1.tar.gz") as results:
        earlier = cwbench.load_runs(results).evaluations
    replaced = (found["sequence"] == "cw3-1") & found["label"].isin(TWICE)
    return pd.concat([found[~replaced], earlier[earlier["label"].isin(TWICE)]])


def at_the_end(found: pd.DataFrame) -> pd.DataFrame:
    """Average performance of each run: all tasks while the last one ends, as in reports."""
    last = found[(found["training_position"] == 2) & (found["segment_step"] > AFTER)]
    return last.groupby([*RUN, "label"])["success_rate"].mean().unstack("label").reset_index()


def in_fifths(found: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Success of each run on its later tasks while they are trained, in fifths of their steps."""
    later = found[(found["training_position"] == found["position"]) & (found["position"] > 0)]
    fifth = pd.cut(later["segment_step"], [0, *BUDGETS], labels=list(BUDGETS))
    rates = later.groupby([fifth, *RUN, "label"], observed=True)["success_rate"].mean()
    table = rates.unstack("label").reset_index()
    return {
        f"{steps - BUDGETS.step:,} to {steps:,}": table[table["segment_step"] == steps]
        for steps in BUDGETS
    }


def print_row(heading: str, rates: pd.DataFrame) -> None:
    """What each seed has, in columns of variants."""
    cells = (", ".join(map(number, rates[label].dropna())) for label in LABELS)
    print(f"| {heading} | {' | '.join(cells)} |")


def print_comparisons(table: pd.DataFrame) -> None:
    """Variants over nine runs; those with the same sequence and seed make a pair."""
    for first, second in COMPARED:
        numbers = compared(table[first], table[second])
        print(f"| {VARIANTS[first]}, {VARIANTS[second]} | {numbers} |")
    others = table[table["sequence"] != "cw3-7"]
    for first, second in SETTINGS:
        numbers = compared(others[first], others[second])
        print(f"| {VARIANTS[first]}, {VARIANTS[second]}, without CW3-7 | {numbers} |")


def learned(found: pd.DataFrame) -> pd.DataFrame:
    """Success of each run on each task while the task's own training ends."""
    own = found[found["training_position"] == found["position"]]
    ends = own[own["segment_step"] > AFTER].groupby(["position", "task", *RUN, "label"])
    return ends["success_rate"].mean().unstack("label").reset_index()


def by_sequence(rates: pd.DataFrame) -> pd.DataFrame:
    return rates.groupby("sequence")[list(EIGHT)].mean()


def print_eight(found: pd.DataFrame) -> None:
    """The release's statistics, RECALL and ClonEx; a sequence counts once."""
    ends = at_the_end(found)
    for sequence, rows in ends.groupby("sequence"):
        cells = (", ".join(map(number, rows[label].dropna())) for label in EIGHT)
        print(f"| {str(sequence).upper()} | {' | '.join(cells)} |")
    of_tasks = learned(found)
    averages = by_sequence(ends)
    later = by_sequence(of_tasks[of_tasks["position"] > 0])
    means = (number(averages[label].mean()) for label in EIGHT)
    print(f"| mean | {' | '.join(means)} |")
    measured = {
        "average performance": averages,
        "without CW3-7": averages.drop("cw3-7"),
        "with earlier runs of CW3-1": by_sequence(at_the_end(with_earlier_runs(found))),
        "later tasks, end of their training": later,
    }
    for what, table in measured.items():
        for first, second in ON_EIGHT:
            numbers = compared(table[first], table[second])
            print(f"| {what} | {EIGHT[first]}, {EIGHT[second]} | {numbers} |")
    for interval, rows in in_fifths(found).items():
        table = by_sequence(rows)
        means = (number(table[label].mean()) for label in EIGHT)
        gains = (compared(table[a], table[b]).split(" | ", 2)[2] for a, b in ON_EIGHT[:2])
        print(f"| {interval} | {' | '.join(means)} | {' | '.join(gains)} |")


def print_peg(found: pd.DataFrame, training: pd.DataFrame) -> None:
    """CW3-7's third task, which RECALL learns badly, with one thing changed at a time."""
    last = found[(found["sequence"] == "cw3-7") & (found["position"] == 2)]
    rates = learned(last)
    late = training[(training["sequence"] == "cw3-7") & (training["position"] == 2)]
    medians = (
        late[late["segment_step"] > AFTER].groupby("label")[["penalty", "actor_loss"]].median()
    )
    for label in PEG:
        fifths = (number(rows[label].mean()) for rows in in_fifths(last).values())
        sizes = (f"{medians[loss].abs()[label]:.2g}" for loss in medians)
        cells = [", ".join(map(number, rates[label].dropna())), *fifths, *sizes]
        print(f"| {VARIANTS[label]} | {' | '.join(cells)} |")


def print_on_the_way(each: dict[str, pd.DataFrame], pairs: Sequence[tuple[str, str]]) -> None:
    """Differences of pairs while later tasks are learned."""
    for interval, rows in each.items():
        gains = (compared(rows[a], rows[b]).split(" | ", 2)[2] for a, b in pairs)
        print(f"| {interval} | {' | '.join(gains)} |")


def main() -> None:
    everything, all_training = tables()
    found, training = of_three(everything), of_three(all_training)
    ends = at_the_end(found)
    for sequence in SEQUENCES:
        print_row(sequence.upper(), ends[ends["sequence"] == sequence])
    print_row("mean", ends[LABELS].mean().to_frame().T)
    rates = learned(found)
    for sequence, position in product(SEQUENCES, range(3)):
        rows = rates[(rates["sequence"] == sequence) & (rates["position"] == position)]
        print_row(f"{sequence.upper()} | {position + 1} | {rows['task'].iloc[0]}", rows)
    print_comparisons(ends)
    each = in_fifths(found)
    for interval, rows in each.items():
        print(f"| {interval} | {' | '.join(number(rows[label].mean()) for label in LABELS)} |")
    print_on_the_way(each, PARTS)
    print_on_the_way(each, SETTINGS)
    earlier = with_earlier_runs(found)
    ends = at_the_end(earlier)
    others = ends[ends["sequence"] != "cw3-7"]
    measured = {"average performance": ends, "without CW3-7": others} | in_fifths(earlier)
    for label, (what, rows) in product(("recall-tn", SMALL, FRESH), measured.items()):
        print(f"| {VARIANTS[label]} | {what} | {compared(rows[label], rows['recall'])} |")
    late = training[(training["position"] > 0) & (training["segment_step"] > AFTER)]
    medians = late.groupby("label")[LOSSES].median()
    for label, name in VARIANTS.items():
        cells = " | ".join(f"{medians[loss].abs()[label]:.2g}" for loss in LOSSES)
        print(f"| {name} | {cells} |")
    print_eight(everything[everything["label"].isin(EIGHT)])
    print_peg(everything, all_training)


if __name__ == "__main__":
    main()
