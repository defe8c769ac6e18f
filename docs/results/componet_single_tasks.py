"""Tables of componet-single-tasks.md, from the runs in componet-single-tasks.tar.gz."""

from pathlib import Path

import pandas as pd
from single_tasks import ends, reached

import cwbench
from cwbench.reports.tables.formats import number
from cwbench.store.merge import opened

ARCHIVE = Path(__file__).with_name("componet-single-tasks.tar.gz")
ENDS = (250_000, 500_000, 750_000, 1_000_000)
NAMES = {"finetuning": "plain SAC", "recall": "RECALL", "recall-pd": "RECALL, raw targets"}


def read() -> pd.DataFrame:
    """Evaluations: `rate` by success at the last step, as the protocol counts, `once` at any."""
    with opened(ARCHIVE) as results:
        found = cwbench.load_runs(results).evaluations
    return found.assign(
        step=found["segment_step"],
        rate=found["success_rate"],
        once=found["successes"] / found["episodes"],
        steps=found.groupby("run")["step"].transform("max"),
    )


def of_seeds(rates: pd.Series) -> str:
    return ", ".join(number(rate) for rate in rates)


def main() -> None:
    found = read()
    for task, own in found[found["steps"] == ENDS[-1]].groupby("task"):
        last = ends(own, ENDS[-1])
        cells = [number(ends(own, end).mean()) for end in ENDS]
        cells += [of_seeds(last), number(ends(own, ENDS[-1], "once").mean()), reached(own)]
        print(f"| {task} | {' | '.join(cells)} |")
    short = found[found["steps"] == ENDS[0]]
    for label, name in NAMES.items():
        own = short[short["label"] == label]
        last, once = ends(own, ENDS[0]), ends(own, ENDS[0], "once")
        print(f"| {name} | {of_seeds(last)} | {number(last.mean())} | {of_seeds(once)} |")


if __name__ == "__main__":
    main()
