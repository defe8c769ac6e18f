"""Tables of both-protocols.md, from the runs in both-protocols.tar.gz and cw3.tar.gz."""

from collections.abc import Iterator
from pathlib import Path

import pandas as pd
from budget import p_text
from cw3 import AFTER
from pairs import from_scratch, rates
from scipy import stats

import cwbench
from cwbench.reports import build
from cwbench.reports.analysis.study import Options
from cwbench.reports.tables.formats import number
from cwbench.store.merge import opened

FOLDER = Path(__file__).parent
ARCHIVES = ("both-protocols", "cw3")
SEQUENCES = ("cw3-1", "cw3-7")
NAMES = {
    "clonex": "ClonEx",
    "finetuning-n": "fine-tuning, a copy per task",
    "continual-backprop": "continual backprop",
    "finetuning": "fine-tuning",
    "ewc": "EWC",
    "independent": "independent",
    "packnet": "PackNet",
    "recall": "RECALL",
    "er": "experience replay",
    "perfect-memory": "Perfect Memory",
}
MEASURES = ("Own window", "All tasks at the end", "Forgetting")


def measures() -> Iterator[tuple[str, list[str], list[float]]]:
    """Label, cells and values of the table `own-window` of both archives together."""
    with opened(FOLDER / f"{ARCHIVES[0]}.tar.gz") as ours, opened(FOLDER / "cw3.tar.gz") as other:
        study = build.read(ours, Options(sequences=SEQUENCES), more=[other])
        [(_, _, table)] = build.tables_of(study, "cw3-own-window")
        labels = {group.title: group.label for group in study.groups}
    [block] = table.blocks
    assert block.columns == MEASURES
    for title, cells in block.rows:
        scores = [cell.score.estimate for cell in cells if cell.score]
        text = [f"{number(s.value)} [{number(s.low)}, {number(s.high)}]" for s in scores]
        yield labels[title], text, [s.value for s in scores]


def evaluations() -> pd.DataFrame:
    loaded = []
    for archive in ARCHIVES:
        with opened(FOLDER / f"{archive}.tar.gz") as results:
            loaded.append(cwbench.load_runs(results).evaluations)
    found = pd.concat(loaded)
    return found[found["sequence"].isin(SEQUENCES)]


def learned(found: pd.DataFrame) -> pd.DataFrame:
    """Success on every task at the end of its own training: a row for each run and task."""
    own = found[(found["training_position"] == found["position"]) & (found["segment_step"] > AFTER)]
    keys = ["sequence", "position", "task", "label", "seed"]
    return own.groupby(keys)["success_rate"].mean().reset_index(name="rate")


def order(table: pd.DataFrame) -> str:
    """Kendall's tau of two measures and its p."""
    tau = stats.kendalltau(table[MEASURES[0]].round(9), table[MEASURES[1]].round(9))
    return f"{len(table)} | {tau.statistic:.2f} | {p_text(tau.pvalue)}"


def main() -> None:
    rows = {label: (text, values) for label, text, values in measures()}
    for label, name in NAMES.items():
        print(f"| {name} | {' | '.join(rows[label][0])} |")
    table = pd.DataFrame({label: values for label, (_, values) in rows.items()}, MEASURES).T
    print(f"| all ten | {order(table)} |")
    keep = table.drop(["finetuning", "continual-backprop"])
    print(f"| without the two that forget | {order(keep)} |")
    found = evaluations()
    ends, scratch = learned(found), rates(from_scratch())
    for label, name in NAMES.items():
        own = ends[ends["label"] == label].groupby(["sequence", "position"])["rate"].mean()
        print(f"| {name} | {' | '.join(number(rate) for rate in own)} |")
    tasks = ends.groupby(["sequence", "position"])["task"].first()
    print(f"| from scratch | {' | '.join(number(scratch[task]) for task in tasks)} |")


if __name__ == "__main__":
    main()
