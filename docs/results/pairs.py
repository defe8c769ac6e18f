"""Tables of pairs.md, from the runs in pairs-*.tar.gz and the reference bank."""

from pathlib import Path

import pandas as pd
from scipy import stats

import cwbench
from cwbench.store.merge import opened

ARCHIVES = {"Perfect Memory": "pairs-perfect-memory", "RECALL": "pairs-recall"}
REFERENCE = Path(cwbench.__file__).parent / "reports" / "data" / "reference" / "compact.csv.gz"
WINDOW = 50_000  # steps that are averaged
ENDS = range(WINDOW, 250_001, WINDOW)


def second_tasks(archive: str) -> pd.DataFrame:
    """Success while second tasks are learned: pair, task, step, rate."""
    with opened(Path(__file__).with_name(f"{archive}.tar.gz")) as results:
        found = cwbench.load_runs(results).evaluations
    own = found[(found["training_position"] == 1) & (found["position"] == 1)]
    names = {"sequence": "pair", "task": "task", "segment_step": "step", "success_rate": "rate"}
    return own[list(names)].rename(columns=names)


def from_scratch() -> pd.DataFrame:
    bank = pd.read_csv(REFERENCE)
    return bank.assign(rate=bank["successes"] / bank["episodes"])


def rates(found: pd.DataFrame, end: int = ENDS[-1]) -> pd.Series:
    """Mean success of each task in the window that ends at a step."""
    inside = found[(found["step"] > end - WINDOW) & (found["step"] <= end)]
    return inside.groupby("task")["rate"].mean()


def compared(ours: pd.Series, other: pd.Series) -> str:
    """Two means over tasks, their difference with its 90 % t interval, Wilcoxon's test."""
    gap = (ours - other).to_numpy()
    margin = stats.t.ppf(0.95, len(gap) - 1) * stats.sem(gap)
    mean, p = gap.mean(), stats.wilcoxon(gap).pvalue
    interval = f"{mean:+.2f} [{mean - margin:+.2f}, {mean + margin:+.2f}]"
    return f"{ours.mean():.2f} | {other.mean():.2f} | {interval} | {p:.3f}"


def main() -> None:
    scratch = from_scratch()
    second = {method: second_tasks(archive) for method, archive in ARCHIVES.items()}
    memory, recall = second.values()
    shared = recall[recall["pair"].isin(memory["pair"])]
    print(f"| {shared['pair'].nunique()} | {compared(rates(shared), rates(memory))} |")
    for method, found in second.items():
        for end in ENDS:
            numbers = compared(rates(found, end), rates(scratch, end))
            print(f"| {method} | {end - WINDOW:,} to {end:,} | {numbers} |")
    columns = {**second, "from scratch": scratch}
    table = pd.DataFrame({name: rates(found) for name, found in columns.items()})
    for task, row in table.iterrows():
        print(f"| {task} | {' | '.join(f'{rate:.2f}' for rate in row)} |")


if __name__ == "__main__":
    main()
