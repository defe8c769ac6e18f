"""The table of point3.md, from point3*.csv: a row for each method and variant, best first."""

from pathlib import Path

import pandas as pd

FOLDER = Path(__file__).parent
METRICS = ("Average Performance", "Forgetting", "Forward Transfer")
SHORT = ("Ave. Perf.", "Forgetting", "F. Transfer")  # as the table of settings has them


def tables() -> pd.DataFrame:
    """method, metric, value, low, high."""
    methods, settings = (
        pd.read_csv(FOLDER / name, comment="#") for name in ("point3.csv", "point3-settings.csv")
    )
    methods = methods.rename(columns={"column": "method", "block": "metric"})
    settings = settings.rename(columns={"row": "method", "column": "metric"})
    settings["metric"] = settings["metric"].map(dict(zip(SHORT, METRICS, strict=True)))
    both = pd.concat([methods, settings])[["method", "metric", "value", "low", "high"]]
    return both.drop_duplicates(["method", "metric"])


def cell(value: float, low: float, high: float) -> str:
    if pd.isna(value):
        return ""
    value, low, high = (round(x, 2) + 0.0 for x in (value, low, high))  # no -0.00
    return f"{value:.2f} [{low:.2f}, {high:.2f}]"


def main() -> None:
    found = tables().set_index(["method", "metric"])
    values = found["value"].unstack()[list(METRICS)]
    for method in values.sort_values(list(METRICS), ascending=[False, True, False]).index:
        cells = (cell(*found.loc[(method, metric)]) for metric in METRICS)
        print(f"| {method} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
