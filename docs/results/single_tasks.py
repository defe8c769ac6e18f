"""Tables of single-tasks.md, from the runs in single-tasks.tar.gz and the reference bank."""

from pathlib import Path

import pandas as pd
from kendall import kendall
from pairs import from_scratch

import cwbench
from cwbench.store.merge import opened

ARCHIVE = Path(__file__).with_name("single-tasks.tar.gz")
ENDS = (100_000, 250_000, 500_000, 750_000, 1_000_000)
SHARE = 0.2  # of a budget: its last evaluations, which are averaged
LEARNED = 0.5
STUCK = 2  # the seed of hammer that does not learn it


def read() -> pd.DataFrame:
    """Evaluations: task, seed, step, rate by Meta-World 3's test and v1 by V1's."""
    with opened(ARCHIVE) as results:
        runs = cwbench.load_runs(results)
    found = runs.evaluations
    return found.assign(
        step=found["segment_step"],
        rate=found["success_rate"],
        v1=found["v1_any"] / found["episodes"],
    )


def ends(found: pd.DataFrame, budget: int, column: str = "rate") -> pd.Series:
    """Success of each task and seed in the last fifth of a budget."""
    inside = found["step"].between(budget * (1 - SHARE), budget, inclusive="right")
    return found[inside].groupby(["task", "seed"])[column].mean()


def reached(found: pd.DataFrame, column: str = "rate") -> str:
    """The first evaluation whose mean over seeds is 0.5 or more."""
    means = found.groupby("step")[column].mean()
    steps = means.index[means >= LEARNED]
    return f"{steps[0]:,}" if len(steps) else "never"


def by_task(found: pd.DataFrame, budget: int, column: str = "rate") -> pd.Series:
    return ends(found, budget, column).groupby("task").mean()


def agreement(early: pd.Series, late: pd.Series) -> str:
    """Kendall's tau of two orders, and its p."""
    tau, p = kendall(early[late.index], late)
    return f"{tau:.2f} | {p:.3f}"


def main() -> None:
    found, compact = read(), from_scratch()
    last, final = ends(found, ENDS[-1]), by_task(found, ENDS[-1])
    for task in final.sort_values(ascending=False).index:
        own = found[found["task"] == task]
        cells = [f"{ends(own, end).mean():.2f}" for end in ENDS]
        cells += [", ".join(f"{rate:.2f}" for rate in last[task]), reached(own)]
        cells += [f"{ends(own, ENDS[-1], 'v1').mean():.2f}", reached(own, "v1")]
        print(f"| {task} | {' | '.join(cells)} |")
    short = by_task(compact, 250_000)
    v1 = by_task(found, ENDS[-1], "v1")
    means = [one.mean() for one in (short[final.index], final, v1)]
    print(f"| the seven | {' | '.join(f'{mean:.2f}' for mean in means)} |")
    means = [one.combine_first(short).mean() for one in (short, final, v1)]
    print(f"| all ten | {' | '.join(f'{mean:.2f}' for mean in means)} |")
    without = found[(found["task"] != "hammer") | (found["seed"] != STUCK)]
    for end in ENDS[:-1]:
        orders = (agreement(by_task(f, end), by_task(f, ENDS[-1])) for f in (found, without))
        print(f"| {end:,} | {' | '.join(orders)} |")
    orders = (agreement(short, by_task(f, ENDS[-1])) for f in (found, without))
    print(f"| 250,000, reference | {' | '.join(orders)} |")


if __name__ == "__main__":
    main()
