"""Tables of single-tasks.md, from the runs in single-tasks.tar.gz and the reference bank."""

from pathlib import Path

import pandas as pd
from scipy import stats

import cwbench
from cwbench.store.merge import opened

ARCHIVE = Path(__file__).with_name("single-tasks.tar.gz")
REFERENCE = Path(cwbench.__file__).parent / "reports" / "data" / "reference" / "compact.csv.gz"
ENDS = (100_000, 250_000, 500_000, 750_000, 1_000_000)
SHARE = 0.2  # of a budget: its last evaluations, which are averaged
LEARNED = 0.5


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


def reached(found: pd.DataFrame) -> str:
    """The first evaluation whose mean over seeds is 0.5 or more."""
    means = found.groupby("step")["rate"].mean()
    steps = means.index[means >= LEARNED]
    return f"{steps[0]:,}" if len(steps) else "never"


def bank() -> pd.DataFrame:
    found = pd.read_csv(REFERENCE)
    return found.assign(rate=found["successes"] / found["episodes"])


def main() -> None:
    found, compact = read(), bank()
    last = ends(found, ENDS[-1])
    final = last.groupby("task").mean().round(9)
    for task in final.sort_values(ascending=False).index:
        own = found[found["task"] == task]
        cells = [f"{ends(own, end).mean():.2f}" for end in ENDS]
        cells += [", ".join(f"{rate:.2f}" for rate in last[task])]
        cells += [f"{ends(own, ENDS[-1], 'v1').mean():.2f}", reached(own)]
        print(f"| {task} | {' | '.join(cells)} |")
    short = ends(compact, 250_000).groupby("task").mean()
    tables = {f"{end:,}": ends(found, end).groupby("task").mean() for end in ENDS[:-1]}
    tables["250,000, the five seeds of the shipped reference"] = short
    for name, table in tables.items():
        rates = table[final.index].round(9)
        tau = stats.kendalltau(rates, final)
        print(f"| {name} | {rates.mean():.2f} | {tau.statistic:.2f} | {tau.pvalue:.3f} |")
    print(f"| 250,000 | {short.mean():.2f} | |")
    v1 = ends(found, ENDS[-1], "v1").groupby("task").mean()
    means = [f"{one.combine_first(short).mean():.2f}" for one in (final, v1)]
    print(f"| 1,000,000 | {' | '.join(means)} |")


if __name__ == "__main__":
    main()
