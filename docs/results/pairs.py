"""Tables of pairs.md, from the runs in pairs-*.tar.gz and the reference bank."""

from pathlib import Path

import pandas as pd
from scipy import stats

import cwbench
from cwbench.reports.tables.formats import number
from cwbench.store.merge import opened

ARCHIVES = {"Perfect Memory": "pairs-perfect-memory", "RECALL": "pairs-recall"}
REFERENCE = Path(cwbench.__file__).parent / "reports" / "data" / "reference" / "compact.csv.gz"
WINDOW = 50_000  # steps that are averaged
ENDS = range(WINDOW, 250_001, WINDOW)
LEARNED = 0.5  # success in the last window
QUANTITIES = ("dormant", "effective_rank", "weight_norm", "gradient_norm")


def read(archive: str) -> cwbench.Runs:
    with opened(Path(__file__).with_name(f"{archive}.tar.gz")) as results:
        return cwbench.load_runs(results)


def second_tasks(runs: cwbench.Runs) -> pd.DataFrame:
    """Success while second tasks are learned: pair, task, step, rate."""
    found = runs.evaluations
    own = found[(found["training_position"] == 1) & (found["position"] == 1)]
    names = {"sequence": "pair", "task": "task", "segment_step": "step", "success_rate": "rate"}
    return own[list(names)].rename(columns=names)


def networks(runs: cwbench.Runs) -> pd.DataFrame:
    """Diagnostics in the last window of second tasks, layers averaged: median over the pairs.

    A row per quantity and network, a column for pairs whose second task was learned or not.
    """
    found = runs.diagnostics
    last = found[(found["position"] == 1) & (found["segment_step"] > ENDS[-1] - WINDOW)]
    last = last[last["quantity"].isin(QUANTITIES)]
    network = last["part"].str.split(".").str[0].rename("network")
    means = last.groupby(["sequence", "quantity", network])["value"].mean()
    made = means.unstack("sequence").T.groupby(learned(second_tasks(runs))).median().T
    return made.set_axis([f"{quantity} of the {network}" for quantity, network in made.index])


def learned(second: pd.DataFrame) -> pd.Series:
    last = second[second["step"] > ENDS[-1] - WINDOW]
    return last.groupby("pair")["rate"].mean() >= LEARNED


def from_scratch() -> pd.DataFrame:
    bank = pd.read_csv(REFERENCE)
    return bank.assign(rate=bank["successes"] / bank["episodes"])


def rates(found: pd.DataFrame, end: int = ENDS[-1]) -> pd.Series:
    """Mean success of each task in the window that ends at a step."""
    inside = found[(found["step"] > end - WINDOW) & (found["step"] <= end)]
    return inside.groupby("task")["rate"].mean()


def compared(ours: pd.Series, other: pd.Series) -> str:
    """Two means, their difference with its 90 % t interval, Wilcoxon's test."""
    gap = (ours - other).round(9).to_numpy()  # equal gaps may differ in the last bit
    margin = stats.t.ppf(0.95, len(gap) - 1) * stats.sem(gap)
    mean, p = gap.mean(), stats.wilcoxon(gap).pvalue
    interval = f"{mean:+.2f} [{mean - margin:+.2f}, {mean + margin:+.2f}]"
    return f"{number(ours.mean())} | {number(other.mean())} | {interval} | {p:.3f}"


def main() -> None:
    scratch = from_scratch()
    runs = {method: read(archive) for method, archive in ARCHIVES.items()}
    second = {method: second_tasks(own) for method, own in runs.items()}
    memory, recall = second.values()
    print(f"| {recall['pair'].nunique()} | {compared(rates(recall), rates(memory))} |")
    for method, found in second.items():
        for end in ENDS:
            numbers = compared(rates(found, end), rates(scratch, end))
            print(f"| {method} | {end - WINDOW:,} to {end:,} | {numbers} |")
    columns = {**second, "from scratch": scratch}
    table = pd.DataFrame({name: rates(found) for name, found in columns.items()})
    for task, row in table.iterrows():
        print(f"| {task} | {' | '.join(f'{rate:.2f}' for rate in row)} |")
    for name, row in pd.concat(map(networks, runs.values()), axis=1).iterrows():
        print(f"| {name} | {' | '.join(f'{value:,.3g}' for value in row)} |")


if __name__ == "__main__":
    main()
