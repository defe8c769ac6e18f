"""What the runs cost, from the counters that training leaves in each segment's status."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from cwbench.reports.analysis.provenance import counters
from cwbench.reports.analysis.scores import Scores
from cwbench.reports.analysis.setups import all_settings
from cwbench.reports.analysis.study import Group, Run
from cwbench.reports.tables.model import Block, Cell

Record = Mapping[str, Any]  # of a segment, with its status

# column -> (counter, how segments combine, unit)
COLUMNS: dict[str, tuple[str, Callable[[Iterable[int]], int], str]] = {
    "Training steps": ("train_steps", sum, "count"),
    "Evaluation steps": ("eval_steps", sum, "count"),
    "Selection steps": ("selection_steps", sum, "count"),
    "Extra steps": ("extra_steps", sum, "count"),
    "Updates": ("updates", sum, "count"),
    "Retraining updates": ("retrain_updates", sum, "count"),
    "Replay, largest": ("replay_bytes", max, "bytes"),
    "Method's own, largest": ("method_bytes", max, "bytes"),
    "Parameters": ("parameters", max, "count"),
}


def count_text(value: float, unit: str) -> str:
    """1234567 -> `1.23M`, bytes as `116 MB`, seconds as `1.50 h` or `2.5 min`."""
    if unit == "seconds":
        return time_text(value, value)
    space = " " if unit == "bytes" else ""
    end = "B" if unit == "bytes" else ""
    for size, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.3g}{space}{letter}{end}"
    return f"{value:.0f}{space}{end}"


def time_text(seconds: float, longest: float) -> str:
    """In the unit that fits the longest time of a column."""
    if longest < 360:
        return f"{seconds / 60:.1f} min"
    hours = seconds / 3600
    return f"{hours:.2f} h" if hours >= 0.005 else "< 0.01 h"


def resources(scores: Scores, family: str) -> tuple[Block, ...]:
    """Totals over the distinct segments of each setting: a shared beginning is counted once."""
    settings = all_settings(scores.groups(family))
    found = [
        [record["status"] for record in used_segments(scores.study.segments, runs_of(one.groups))]
        for one in settings
    ]
    recorded = {name for statuses in found for one in statuses for name in counters(one)}
    columns = {title: rule for title, rule in COLUMNS.items() if rule[0] in recorded}
    rows = []
    for setting, statuses, time in zip(settings, found, _times(found), strict=True):
        cells = [_total(statuses, *rule) for rule in columns.values()]
        runs = runs_of(setting.groups)
        ended = f"{sum(run.state == 'done' for run in runs)} of {len(runs)}"
        rows.append((setting.title, (Cell(text=ended), *cells, time)))
    return (Block("", "Method", ("Runs ended", *columns, "Wall time"), tuple(rows)),)


def runs_of(groups: Sequence[Group]) -> list[Run]:
    return [run for group in groups for run in group.runs]


def _total(
    statuses: Sequence[Mapping[str, Any]],
    counter: str,
    combine: Callable[[Iterable[int]], int],
    unit: str,
) -> Cell:
    values = [int(counters(one)[counter]) for one in statuses if counter in counters(one)]
    if not values:
        return Cell()
    total = combine(values)
    return Cell(text=count_text(total, unit), amount=total)


def _times(found: Sequence[Sequence[Mapping[str, Any]]]) -> list[Cell]:
    """The wall time of each setting, all in one unit."""
    known = [[float(one["seconds"]) for one in row if "seconds" in one] for row in found]
    totals = [sum(row) for row in known]
    longest = max(totals, default=0.0)
    return [
        Cell(text=time_text(total, longest), amount=total) if row else Cell()
        for row, total in zip(known, totals, strict=True)
    ]


def used_segments(segments: Mapping[str, Record], runs: Iterable[Run]) -> list[Record]:
    """Every distinct segment on disk of these runs, experts included."""
    ids = {key for run in runs for key in run.segments}
    known = [segments[key] for key in ids if key in segments]
    ids |= {str(record["expert"]) for record in known if isinstance(record.get("expert"), str)}
    return [segments[key] for key in sorted(ids) if key in segments]
