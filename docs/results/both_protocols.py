"""Tables of both-protocols.md, from the runs in both-protocols.tar.gz and cw3.tar.gz."""

from pathlib import Path

import pandas as pd
from budget import p_text
from cw3 import AFTER
from kendall import kendall
from pairs import from_scratch, rates

import cwbench
from cwbench.reports import build
from cwbench.reports.analysis.study import Options
from cwbench.reports.tables.formats import number
from cwbench.store.merge import opened

FOLDER = Path(__file__).parent
ARCHIVES = ("both-protocols", "cw3")
SEQUENCES = ("cw3-1", "cw3-7")
HAMMERS = "hammer-hammer-hammer"
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


def measures(protocol: str) -> tuple[dict[str, str], pd.DataFrame]:
    """Cells and values of a protocol's table `own-window`, a row for each label."""
    options = Options(sequences=SEQUENCES, protocols=(protocol,))
    with opened(FOLDER / f"{ARCHIVES[0]}.tar.gz") as ours, opened(FOLDER / "cw3.tar.gz") as other:
        study = build.read(ours, options, more=[other])
        [(_, _, table)] = build.tables_of(study, "cw3-own-window")
        labels = {group.title: group.label for group in study.groups}
    [block] = table.blocks
    assert block.columns == MEASURES
    text, values = {}, {}
    for title, cells in block.rows:
        scores = [cell.score.estimate for cell in cells if cell.score]
        shown = [f"{number(s.value)} [{number(s.low)}, {number(s.high)}]" for s in scores]
        text[labels[title]] = " | ".join(shown)
        values[labels[title]] = [s.value for s in scores]
    return text, pd.DataFrame(values, MEASURES).T


def evaluations() -> pd.DataFrame:
    loaded = []
    for archive in ARCHIVES:
        with opened(FOLDER / f"{archive}.tar.gz") as results:
            loaded.append(cwbench.load_runs(results).evaluations)
    return pd.concat(loaded)


def learned(found: pd.DataFrame) -> pd.DataFrame:
    """Success on every task at the end of its own training: a row for each run and task.

    `rate` counts as the protocol does, `solved_once` at any step.
    """
    own = found[(found["training_position"] == found["position"]) & (found["segment_step"] > AFTER)]
    own = own.assign(rate=own["success_rate"], solved_once=own["successes"] / own["episodes"])
    keys = ["protocol", "sequence", "position", "task", "label", "seed"]
    return own.groupby(keys)[["rate", "solved_once"]].mean().reset_index()


def by_task(ends: pd.DataFrame, protocol: str, label: str) -> pd.DataFrame:
    chosen = ends[(ends["protocol"] == protocol) & (ends["label"] == label)]
    return chosen.groupby(["sequence", "position"])[["rate", "solved_once"]].mean()


def order(one: pd.Series, other: pd.Series) -> str:
    """Kendall's tau of two columns and its p."""
    tau, p = kendall(one, other)
    return f"{len(one)} | {tau:.2f} | {p_text(p)}"


def print_orders(theirs: pd.DataFrame, componet: pd.DataFrame) -> None:
    own, end, _ = MEASURES
    forgetful = ["finetuning", "continual-backprop"]
    keep, keep_componet = theirs.drop(forgetful), componet.drop(forgetful)
    eight = theirs.loc[componet.index]
    for what, one, other in (
        ("own window and end, all ten, Continual World's rules", theirs[own], theirs[end]),
        ("the same without the two that forget", keep[own], keep[end]),
        ("the same, the eight that were run under both rules", eight[own], eight[end]),
        ("own window and end, these eight, CompoNet's rules", componet[own], componet[end]),
        ("the same without these two", keep_componet[own], keep_componet[end]),
        ("own window, these eight, under one rules and the other", eight[own], componet[own]),
        ("end, these eight, under one rules and the other", eight[end], componet[end]),
    ):
        print(f"| {what} | {order(one, other)} |")


def print_positions(found: pd.DataFrame) -> None:
    """Hammer three times: the area of each seed, their mean, and the mean at the end."""
    own = found[found["training_position"] == found["position"]]
    areas = own.groupby(["position", "seed"])["success_rate"].mean().unstack()
    last = own[own["segment_step"] > AFTER].groupby("position")["success_rate"].mean()
    for position, name in enumerate(("first", "second", "third")):
        values = [*areas.loc[position], areas.loc[position].mean(), last[position]]
        print(f"| {name} | {' | '.join(number(value) for value in values)} |")


def main() -> None:
    tables = {}
    for protocol in ("compact", "componet"):
        text, tables[protocol] = measures(protocol)
        for label, name in NAMES.items():
            if label in text:
                print(f"| {name} | {text[label]} |")
    print_orders(*tables.values())
    found = evaluations()
    ends = learned(found[found["sequence"].isin(SEQUENCES)])
    scratch = rates(from_scratch())
    for label, name in NAMES.items():
        own = by_task(ends, "compact", label)["rate"]
        print(f"| {name} | {' | '.join(number(rate) for rate in own)} |")
    tasks = ends.groupby(["sequence", "position"])["task"].first()
    print(f"| from scratch | {' | '.join(number(scratch[task]) for task in tasks)} |")
    for label, name in NAMES.items():
        if label in tables["componet"].index:
            both = by_task(ends, "componet", label).to_numpy()
            cells = [f"{number(rate)} ({number(once)})" for rate, once in both]
            print(f"| {name} | {' | '.join(cells)} |")
    print_positions(found[found["sequence"] == HAMMERS])


if __name__ == "__main__":
    main()
