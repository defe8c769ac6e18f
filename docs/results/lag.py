"""Tables of lag.md, from the runs in lag.tar.gz."""

from pathlib import Path

import pandas as pd
from scipy import stats

import cwbench
from cwbench.store.merge import opened

LABELS = {"finetuning": "lag 0", "finetuning (lag=1)": "lag 1"}


def evaluations() -> pd.DataFrame:
    with opened(Path(__file__).with_name("lag.tar.gz")) as results:
        found = cwbench.load_runs(results).evaluations
    return found.assign(lag=found["label"].map(LABELS))


def main() -> None:
    found = evaluations()
    areas = found.groupby(["task", "seed", "lag"])["success_rate"].mean().unstack("lag")
    for task, own in areas.groupby("task"):
        print(f"| {task} | {_compared(own)} |")
    print(f"| both | {_compared(areas.groupby('seed').mean())} |")
    curves = found.groupby(["segment_step", "task", "lag"])["success_rate"].mean()
    for step, rates in curves.unstack(["task", "lag"]).sort_index(axis=1).iterrows():
        print(f"| {step:,} | {' | '.join(f'{rate:.2f}' for rate in rates)} |")


def _compared(areas: pd.DataFrame) -> str:
    gap = (areas["lag 1"] - areas["lag 0"]).round(9).to_numpy()  # as in pairs.compared
    margin = stats.t.ppf(0.95, len(gap) - 1) * stats.sem(gap)
    mean, p = gap.mean(), stats.wilcoxon(gap).pvalue
    interval = f"{mean:+.2f} [{mean - margin:+.2f}, {mean + margin:+.2f}]"
    return f"{areas['lag 0'].mean():.2f} | {areas['lag 1'].mean():.2f} | {interval} | {p:.2f}"


if __name__ == "__main__":
    main()
