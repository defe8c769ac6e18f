"""Tables of ablation.md, from the runs in ablation.tar.gz, cw3.tar.gz and cw3-1.tar.gz."""

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
VARIANTS = {
    "recall": NAMES["recall"],
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
]
ON_THE_WAY = [("recall-tn", "recall-none"), (RELEASE, "recall-pd"), ("recall-tn", "recall")]
RUN = ["sequence", "seed"]
LOSSES = ["penalty", "actor_loss", "value_std"]


def tables() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Evaluations and training statistics of the variants and ClonEx on the three triplets."""
    loaded = []
    for archive in ("cw3", "ablation"):
        with opened(FOLDER / f"{archive}.tar.gz") as results:
            loaded.append(cwbench.load_runs(results))
    return of_study([runs.evaluations for runs in loaded]), of_study([r.training for r in loaded])


def of_study(found: list[pd.DataFrame]) -> pd.DataFrame:
    table = pd.concat(found, ignore_index=True)
    return table[table["sequence"].isin(SEQUENCES) & table["label"].isin(LABELS)]


def with_earlier_runs(found: pd.DataFrame) -> pd.DataFrame:
    """The same with RECALL's first training of CW3-1 instead of its second."""
    with opened(FOLDER / "cw3-1.tar.gz") as results:
        earlier = cwbench.load_runs(results).evaluations
    replaced = (found["sequence"] == "cw3-1") & (found["label"] == "recall")
    return pd.concat([found[~replaced], earlier[earlier["label"] == "recall"]])


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


def main() -> None:
    found, training = tables()
    ends = at_the_end(found)
    for sequence in SEQUENCES:
        print_row(sequence.upper(), ends[ends["sequence"] == sequence])
    print_row("mean", ends[LABELS].mean().to_frame().T)
    own = found[found["training_position"] == found["position"]]
    rates = own[own["segment_step"] > AFTER].groupby(["position", "task", *RUN, "label"])
    learned = rates["success_rate"].mean().unstack("label").reset_index()
    for sequence, position in product(SEQUENCES, range(3)):
        rows = learned[(learned["sequence"] == sequence) & (learned["position"] == position)]
        print_row(f"{sequence.upper()} | {position + 1} | {rows['task'].iloc[0]}", rows)
    print_comparisons(ends)
    each = in_fifths(found)
    for interval, rows in each.items():
        print(f"| {interval} | {' | '.join(number(rows[label].mean()) for label in LABELS)} |")
    for interval, rows in each.items():
        gains = (compared(rows[a], rows[b]).split(" | ", 2)[2] for a, b in ON_THE_WAY)
        print(f"| {interval} | {' | '.join(gains)} |")
    earlier = with_earlier_runs(found)
    wholes = {"average performance": at_the_end(earlier)}
    for what, rows in (wholes | in_fifths(earlier)).items():
        print(f"| {what} | {compared(rows['recall-tn'], rows['recall'])} |")
    late = training[(training["position"] > 0) & (training["segment_step"] > AFTER)]
    medians = late.groupby("label")[LOSSES].median()
    for label, name in VARIANTS.items():
        cells = " | ".join(f"{medians[loss].abs()[label]:.2g}" for loss in LOSSES)
        print(f"| {name} | {cells} |")


if __name__ == "__main__":
    main()
