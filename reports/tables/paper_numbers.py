"""Published numbers, what is impossible among them, and how ours compare.

Numbers of the RECALL paper (TMLR 2023): five seeds, 90 % percentile bootstrap, Meta-World V1.
"""

import csv
import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from scipy import special

from cwbench.reports.analysis.intervals import LEVEL, t_quantile
from cwbench.reports.analysis.scores import Score
from cwbench.reports.analysis.study import Protocol
from cwbench.spec.config import ScheduleConfig
from cwbench.spec.options import completed

SEEDS = 5
ROUNDING = 0.005  # published with two digits
NO_NUMBER = "no number of ours"
MARGIN = 0.1  # a difference surely smaller than this counts as agreement
SETTINGS: dict[str, dict[str, Any]] = {
    "env": {"obs": "cw12", "reward": "cw_v1", "horizon": 200},
    "schedule": {
        "steps_per_task": 1_000_000,
        "eval_every": 20_000,
        "eval_episodes": 10,
        "start_steps": 10_000,
        "update_after": 1_000,
        "update_every": 50,
        "lag": 0,
    },
}
WINDOW = 10
RANGES = {
    "average_performance": (0.0, 1.0),
    "performance": (0.0, 1.0),
    "final_success": (0.0, 1.0),
    "forgetting": (-1.0, 1.0),
    "forward_transfer": (-math.inf, 1.0),
}


@dataclass(frozen=True)
class Published:
    """One published cell. `row` is what it stands for: a sequence, `mean`, or a setting."""

    table: str
    row: str
    column: str
    metric: str
    value: float
    low: float = math.nan
    high: float = math.nan
    seeds: int = SEEDS

    @property
    def name(self) -> str:
        return f"{self.table}, row {self.row}, {self.column}, {self.metric.replace('_', ' ')}"

    @property
    def error(self) -> float:
        """Standard error behind a published interval.

        A percentile bootstrap of n seeds has the spread of s * sqrt((n - 1) / n) / sqrt(n).
        """
        width = (self.high - self.low) / (2 * special.ndtri((1 + LEVEL) / 2))
        return with_rounding(width * math.sqrt(self.seeds / (self.seeds - 1)))


def with_rounding(error: float) -> float:
    """The standard error of a number that was rounded to two digits."""
    return math.hypot(error, ROUNDING / math.sqrt(3))


def rows(name: str) -> list[dict[str, str]]:
    text = (files("cwbench.reports") / "data" / f"{name}.csv").read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


@cache
def published() -> tuple[Published, ...]:
    """Every published cell that a run of ours can be compared with."""
    found = [
        cell(table.replace("_", "-"), row["sequence"].lower(), row["method"], row)
        for table in ("cw3", "cw6", "cw10_cw20")
        for row in rows(table)
    ]
    found += [cell("lambda", row["lambda"], "recall", row) for row in rows("lambda")]
    found += [
        cell("replay", row["pair"], row["replay_mode"], row) for row in rows("offline_online")
    ]
    for row in rows("actor_critic_sharing"):
        setting = f"{row['actor']} actor, {row['critic']} critic"
        found.append(cell("sharing", setting, row["task"], row))
    return tuple(found)


def cell(
    table: str, row: str, column: str, content: dict[str, str], seeds: int = SEEDS
) -> Published:
    low, high = (float(content[key]) if content[key] else math.nan for key in ("ci_low", "ci_high"))
    mean = float(content["mean"])
    return Published(table, row, column, content["metric"], mean, low, high, seeds)


def pair_summary() -> dict[tuple[str, str], float]:
    """(method, quantity) -> value quoted for the pair matrices."""
    return {
        (row["method"], row["quantity"]): float(row["value"]) for row in rows("pairwise_summary")
    }


# What cannot be -------------------------------------------------------------------------------


def impossible(cell: Published) -> str:
    """Why a published cell cannot be right, or nothing."""
    low, high = RANGES[cell.metric]
    if not low <= cell.value <= high:
        return f"{cell.value:.2f} is outside [{low:g}, {high:g}]"
    if cell.low > cell.high:
        return f"the interval [{cell.low:.2f}, {cell.high:.2f}] is upside down"
    if cell.value < cell.low or cell.value > cell.high:
        return f"{cell.value:.2f} is outside its own interval [{cell.low:.2f}, {cell.high:.2f}]"
    return ""


def lint() -> list[str]:
    """Every published number that cannot be right, cell by cell and between cells."""
    found = [f"{cell.name}: {why}" for cell in published() if (why := impossible(cell))]
    groups: dict[tuple[str, str, str], dict[str, Published]] = {}
    for cell in published():
        if cell.table in ("cw3", "cw6"):
            groups.setdefault((cell.table, cell.column, cell.metric), {})[cell.row] = cell
    for cells in groups.values():
        mean = cells["mean"]
        own = [cell.value for cell in cells.values() if cell.row != "mean"]
        rounded = sum(own) / len(own)
        if abs(mean.value - rounded) > 2 * ROUNDING + 1e-9:  # of the rows and of the mean itself
            found.append(f"{mean.name}: {mean.value:.2f}, but its rows average {rounded:.3f}")
    ours = {(c.row, c.column, c.metric): c for c in published() if c.table == "cw6"}
    for cell in published():
        if cell.table == "lambda" and cell.row == "10":  # the default: the same runs as CW6-1
            twin = ours["1", "recall", cell.metric]
            if (cell.value, cell.low, cell.high) != (twin.value, twin.low, twin.high):
                found.append(f"{cell.name} differs from {twin.name}, the same runs")
    quoted = pair_summary()
    for method in {method for method, _ in quoted}:
        parts = [quoted[method, f"first_task_forgetting_{side}_0.1_count"] for side in ("gt", "lt")]
        if sum(parts) != quoted[method, "pairs_total"]:
            found.append(f"pairs, {method}: counts of forgetting do not add up to all pairs")
    return found


# Our numbers and the published ones ------------------------------------------------------------


def protocol_differences(
    protocol: Protocol, window: int, published_window: int = WINDOW
) -> list[str]:
    """In which settings our protocol is not the paper's, the simulator apart."""
    found = []
    for group, wanted in SETTINGS.items():
        ours = protocol.env if group == "env" else completed(ScheduleConfig, protocol.schedule)
        found += [
            f"{key} {ours.get(key)} instead of {value}"
            for key, value in wanted.items()
            if ours.get(key) != value
        ]
    if window != published_window:
        found.append(f"window {window} instead of {published_window}")
    return found


def mean_error(cells: Iterable[Published]) -> float:
    """Standard error of a published mean row, which has no interval, from the rows above it."""
    errors = [cell.error for cell in cells]
    return math.hypot(*errors) / len(errors)


def verdict(ours: Score, cell: Published, error: float | None = None) -> str:
    """agrees, differs, cannot tell at this n, or why there is nothing to compare.

    A 90 % Welch interval of the difference decides: without 0 the numbers differ, inside the
    margin they agree, and otherwise this many seeds cannot tell.
    """
    if math.isnan(ours.value):
        return NO_NUMBER
    if impossible(cell):
        return "published cell is impossible"
    theirs = cell.error if error is None else error
    if ours.seeds < 2 or math.isnan(theirs) or math.isnan(ours.estimate.error):
        return "cannot tell at this n"
    mine, freedom = ours.estimate.error, ours.estimate.freedom
    total = mine**2 + theirs**2
    welch = total**2 / (mine**4 / freedom + theirs**4 / (cell.seeds - 1))
    reach = t_quantile(welch) * math.sqrt(total)
    gap = ours.value - cell.value
    if abs(gap) > reach:
        return "differs"
    return "agrees" if abs(gap) + reach <= MARGIN else "cannot tell at this n"
