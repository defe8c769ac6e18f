"""What a shorter study would have said: ranks at 50,000 and 100,000 steps against 250,000."""

from pathlib import Path

import pandas as pd
from kendall import kendall

import cwbench
from cwbench.store.merge import opened

FOLDER = Path(__file__).parent
BUDGETS = (50_000, 100_000, 150_000, 250_000)
STUDIES = {
    "six methods on CW3-1": ("cw3-1", "label"),
    "six methods on CW3-1 to CW3-8": ("cw3", "label"),
    "second tasks of RECALL's pairs": ("pairs-recall", "task"),
    "second tasks of Perfect Memory's pairs": ("pairs-perfect-memory", "task"),
}


def learned(archive: str, column: str) -> pd.DataFrame:
    """Success on the task in training: a row for each value of `column`, a column per budget."""
    with opened(FOLDER / f"{archive}.tar.gz") as results:
        found = cwbench.load_runs(results).evaluations
    own = found[(found["training_position"] == found["position"]) & (found["position"] > 0)]
    return pd.DataFrame({end: _ends(own, end).groupby(own[column]).mean() for end in BUDGETS})


def _ends(own: pd.DataFrame, budget: int) -> pd.Series:
    """Rates of the last fifth of a budget; other evaluations are left out."""
    inside = own["segment_step"].between(budget * 0.8, budget, inclusive="right")
    return own["success_rate"].where(inside)


def p_text(p: float) -> str:
    return f"{p:.3f}" if p >= 0.001 else "< 0.001"


def main() -> None:
    for title, (archive, column) in STUDIES.items():
        table = learned(archive, column)
        for budget in BUDGETS[:-1]:
            tau, p = kendall(table[budget], table[BUDGETS[-1]])
            print(
                f"| {title} | {len(table)} | {budget:,} | {table[budget].mean():.2f} | "
                f"{tau:.2f} | {p_text(p)} |"
            )
        print(f"| {title} | {len(table)} | {BUDGETS[-1]:,} | {table[BUDGETS[-1]].mean():.2f} | | |")


if __name__ == "__main__":
    main()
