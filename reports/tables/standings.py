"""Where methods stand on a family of sequences: scores, aggregates, ranks, and what they cost.

Figures and the page draw these; tables print some of them.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import isnan, nan

import numpy as np
from numpy.typing import NDArray

from cwbench.reports.analysis import aggregates, comparison, names, stability
from cwbench.reports.analysis.bands import Curve, seed_curve
from cwbench.reports.analysis.intervals import Estimate
from cwbench.reports.analysis.provenance import counters
from cwbench.reports.analysis.scores import Score, Scores, nothing, one_seed, seed_matrix
from cwbench.reports.analysis.setups import Setting
from cwbench.reports.tables.formats import number
from cwbench.reports.tables.model import Block, Cell, empty_cell, score_cell
from cwbench.reports.tables.paper_numbers import impossible, published
from cwbench.reports.tables.resources import runs_of, used_segments
from cwbench.spec.text import listed

Array = NDArray[np.float64]
BYTES = 4  # of a parameter


@dataclass(frozen=True, eq=False)
class Standing:
    setting: Setting
    estimate: Estimate
    runs: Array  # the values of single runs, where there are some
    seeds: int = 0  # behind the estimate


@dataclass(frozen=True)
class Point:
    """A method in the plane; (value, low, high) each. Slot -1: a published one."""

    slot: int
    method: str
    x: tuple[float, float, float]
    y: tuple[float, float, float]


def sequences_of(scores: Scores, family: str) -> list[str]:
    return list(dict.fromkeys(g.sequence for g in scores.groups(family)))


def standings(scores: Scores, family: str, metric: str) -> list[Standing]:
    """Mean over sequences of every setting, and the values of its runs."""
    count = len(sequences_of(scores, family))
    found = []
    for setting in scores.settings(family):
        score = score_cell(scores, setting.groups, metric, count).score or nothing("")
        values, _ = seed_matrix(scores, setting.groups, metric)
        runs = values[~np.isnan(values)]
        found.append(Standing(setting, score.estimate, runs, score.seeds))
    return found


# What is drawn of a method besides performance and forward transfer.
OTHER_METRICS = (
    "forgetting",
    "anytime_performance",
    "worst_task",
    "minimum_after_learning",
    "later_transfer",
    "area_gain",
    "negative_transfer",
)


def other_standings(scores: Scores, family: str) -> dict[str, list[Standing]]:
    """Metric -> standings, of the metrics that any setting has."""
    found = {metric: standings(scores, family, metric) for metric in OTHER_METRICS}
    return {
        metric: rows
        for metric, rows in found.items()
        if not all(isnan(row.estimate.value) for row in rows)
    }


def after_switch(scores: Scores, setting: Setting) -> Curve:
    """Change of old tasks after a switch, one value per seed: the mean over its sequences."""
    groups = [group for group in setting.groups if not group.joint and len(group.tasks) > 1]
    found = [(g.seeds, stability.after_switch(g.complete, scores.window)) for g in groups]
    seeds = sorted({seed for own, _ in found for seed in own})
    values = np.full((len(seeds), len(found), scores.protocol.evaluations), np.nan)
    for index, (own, curves) in enumerate(found):
        values[[seeds.index(seed) for seed in own], index] = curves
    options = scores.study.options
    runs = values.mean(1) if found else np.full((1, scores.protocol.evaluations), np.nan)
    return seed_curve(runs, runs.shape[1], options.band, options.level, smooth=1, bounds=(-1, 1))


def verdict(scores: Scores, family: str) -> str:
    """Who has the highest average performance, all that tie, and who may be as good."""
    rows = standings(scores, family, "average_performance")
    known = [row for row in rows if not isnan(row.estimate.value)]
    if len(known) < 2:
        return ""
    top = max(row.estimate.value for row in known)
    best = [row for row in known if round(top - row.estimate.value, comparison.DIGITS) == 0]
    leaders = listed([row.setting.title for row in best])
    if len(best) == len(known):
        title = scores.title(family)
        return f"{title}: {leaders} have the same average performance, {number(top)}."
    sure = [row for row in known if not isnan(row.estimate.low)]
    near = [row.setting.title for row in sure if row not in best and _overlaps(row, best)]
    unsure = [row.setting.title for row in known if row not in sure]
    others = f"by these intervals {', '.join(near) or 'no other'} may be as good"
    if unsure:
        others += f", and one seed cannot tell of {', '.join(unsure)}"
    if all(isnan(row.estimate.low) for row in best):
        others = "one seed says nothing about how sure that is"
    among = f" of the {len(known)} methods with all sequences" if len(known) < len(rows) else ""
    verb = "have" if len(best) > 1 else "has"
    return (
        f"{scores.title(family)}: {leaders} {verb} the highest average performance{among}, "
        f"{_best_score(best)}; {others}."
    )


def _overlaps(row: Standing, best: list[Standing]) -> bool:
    """Whether its interval reaches that of one of the best; its mean is lower."""
    return any(row.estimate.high >= one.estimate.low for one in best)


def _best_score(best: list[Standing]) -> str:
    """`0.97 [0.95, 0.99], n = 5 seeds`, or what tied methods have each."""
    intervals = {row.setting.title: _interval(row) for row in best if not isnan(row.estimate.low)}
    score = number(best[0].estimate.value)
    if len(best) == 1:
        return " ".join([score, *intervals.values()])
    of_each = "; ".join(f"{title} {interval}" for title, interval in intervals.items())
    return f"{score} each" + (f" ({of_each})" if of_each else "")


def _interval(row: Standing) -> str:
    return f"[{number(row.estimate.low)}, {number(row.estimate.high)}], n = {row.seeds} seeds"


# Aggregates and ranks -------------------------------------------------------------------------


def _whole(scores: Scores, setting: Setting, sequences: int) -> tuple[Array, list[int]] | None:
    """[S, R] of the seeds finished on all sequences; None where a sequence or a seed is missing."""
    if len(setting.groups) < sequences:
        return None
    values, seeds = seed_matrix(scores, setting.groups, "average_performance")
    ended = np.asarray(~np.isnan(values).any(0))
    kept = [seed for seed, whole in zip(seeds, ended, strict=True) if whole]
    return (values[:, ended], kept) if kept else None


def aggregate_standings(scores: Scores, family: str, name: str) -> list[Standing]:
    count = len(sequences_of(scores, family))
    found = []
    for setting in scores.settings(family):
        if whole := _whole(scores, setting, count):
            estimate = aggregates.aggregate(whole[0], name, scores.level)
            found.append(Standing(setting, estimate, np.empty(0), len(whole[1])))
    return found


def rank_standings(scores: Scores, family: str) -> tuple[list[Standing], list[tuple[str, ...]]]:
    """Mean ranks on the seeds that all settings share, best first, and who is not told apart."""
    count = len(sequences_of(scores, family))
    known = [(s, whole) for s in scores.settings(family) if (whole := _whole(scores, s, count))]
    table = aggregates.shared([whole for _, whole in known])
    if len(known) < 2 or not table.size:
        return [], []
    found = [
        Standing(setting, estimate, np.empty(0), table.shape[2])
        for (setting, _), estimate in zip(
            known, aggregates.rank_estimates(table, scores.level), strict=True
        )
    ]
    groups = aggregates.cliques(table, scores.level)  # with one seed, all of them
    joined = [tuple(known[index][0].title for index in group) for group in groups]
    return sorted(found, key=lambda standing: standing.estimate.value), joined


def why_unranked(scores: Scores, family: str) -> str:
    if len(scores.settings(family)) < 2:
        return "ranks need two methods"
    return "no seed has ended with every method on all sequences"


def aggregate_table(scores: Scores, family: str) -> tuple[Block, ...]:
    """A row per method: every aggregate of performance, and the mean rank.

    They are of the seeds that have ended on all sequences.
    """
    columns = tuple(aggregates.AGGREGATES.values())
    rows = tuple(_aggregate_rows(scores, family))
    return (Block("Average Performance", "Method", (*columns, "Mean rank"), rows),)


def _aggregate_rows(scores: Scores, family: str) -> Iterator[tuple[str, tuple[Cell, ...]]]:
    columns = [aggregate_standings(scores, family, name) for name in aggregates.AGGREGATES]
    ranked = rank_standings(scores, family)[0]
    settings = scores.settings(family)
    unranked = why_unranked(scores, family)
    for setting in settings:
        found = [_standing_of(setting, column) for column in columns]
        scored = [_seeds_score(one, "no seed has ended on all sequences") for one in found]
        rank = _standing_of(setting, ranked)
        scored.append(_seeds_score(rank, unranked if any(found) else scored[0].why))
        if rank and rank.seeds > 1 and isnan(rank.estimate.low):
            scored[-1] = replace(scored[-1], why="the same rank with every seed: no interval")
        asked = set.intersection(*(set(group.seeds) for group in setting.groups))
        empty = replace(empty_cell(setting.groups), asked=len(asked), ended=None)
        yield setting.title, tuple(replace(empty, score=score) for score in scored)


def _standing_of(setting: Setting, column: list[Standing]) -> Standing | None:
    return next((row for row in column if row.setting.setup == setting.setup), None)


def _seeds_score(standing: Standing | None, why: str) -> Score:
    if standing is None:
        return nothing(why)
    return Score(standing.estimate, standing.seeds, one_seed(standing.seeds))


# Trade-offs -----------------------------------------------------------------------------------


def triple(estimate: Estimate) -> tuple[float, float, float]:
    return estimate.value, estimate.low, estimate.high


def against_transfer(scores: Scores, family: str) -> list[Point]:
    """Forward transfer across, average performance up; published means in grey."""
    across = standings(scores, family, "forward_transfer")
    up = standings(scores, family, "average_performance")
    found = [
        Point(a.setting.slot, a.setting.title, triple(a.estimate), triple(b.estimate))
        for a, b in zip(across, up, strict=True)
        if not isnan(a.estimate.value) and not isnan(b.estimate.value)
    ]
    return found + published_points(scores, family) if found else []


def against_memory(scores: Scores, family: str) -> list[Point]:
    """Bytes kept across (replay memory, what the method keeps, parameters), performance up."""
    found = []
    for row in standings(scores, family, "average_performance"):
        size = memory(scores, row.setting)
        if size and not isnan(row.estimate.value):
            x = (float(size), nan, nan)
            found.append(Point(row.setting.slot, row.setting.title, x, triple(row.estimate)))
    return found


def memory(scores: Scores, setting: Setting) -> int:
    """Bytes of a run's replay memory, of what its method keeps and of its parameters, at most.

    0 if they were not recorded.
    """
    records = used_segments(scores.study.segments, runs_of(setting.groups))
    known = [counters(record["status"]) for record in records]
    size = {"replay_bytes": 1, "method_bytes": 1, "parameters": BYTES}  # of one
    return sum(
        unit * max((int(one.get(name, 0)) for one in known), default=0)
        for name, unit in size.items()
    )


def published_points(scores: Scores, family: str) -> list[Point]:
    """The paper's means over the sequences at hand, of methods that have them all.

    A method with an impossible cell among them has none.
    """
    rows = [sequence.removeprefix(f"{family}-") for sequence in sequences_of(scores, family)]
    cells = {
        (cell.column, cell.metric, cell.row): cell.value
        for cell in published()
        if cell.table in (family, "cw10-cw20") and not impossible(cell)
    }
    found = []
    for method in dict.fromkeys(method for method, _, _ in cells):
        x, y = (
            [cells.get((method, metric, row), nan) for row in rows]
            for metric in ("forward_transfer", "average_performance")
        )
        if rows and not np.isnan([*x, *y]).any():
            x_mean, y_mean = float(np.mean(x)), float(np.mean(y))
            title = names.method_title(method)
            found.append(Point(-1, title, (x_mean, nan, nan), (y_mean, nan, nan)))
    return found
