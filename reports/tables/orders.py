"""How much the order of tasks matters: means over orders and seeds, and the order's share."""

import numpy as np

from cwbench.reports.analysis import names
from cwbench.reports.analysis.intervals import Estimate, known_interval
from cwbench.reports.analysis.orders import Interval, by_family, complete, order_effect
from cwbench.reports.analysis.scores import Score, Scores, nothing, seed_matrix
from cwbench.reports.analysis.setups import all_settings
from cwbench.reports.analysis.study import Group
from cwbench.reports.tables.model import Block, Cell, empty_cell
from cwbench.reports.tables.standings import Standing

METRICS = ("average_performance", "forgetting", "anytime_performance")


def present(scores: Scores) -> bool:
    """Whether a setting has been asked for in several orders."""
    families = [by_family(setting.groups) for setting in all_settings(scores.groups("other"))]
    return any(len(rows) > 1 for found in families for rows in found.values())


def orders(scores: Scores) -> tuple[Block, ...]:
    """A block for each metric; a row for each setting and family of orders."""
    settings = all_settings(scores.groups("other"))
    blocks = []
    for metric in METRICS:
        rows = [
            (f"{setting.title}, {family}", _cells(scores, groups, metric))
            for setting in settings
            for family, groups in by_family(setting.groups).items()
            if len(groups) > 1 and not any(group.joint for group in groups)
        ]
        columns = ("Mean", "Share of the order", "Orders", "Seeds")
        blocks.append(Block(names.METRICS[metric].title, "Method", columns, tuple(rows)))
    return tuple(blocks)


def _cells(scores: Scores, groups: list[Group], metric: str) -> tuple[Cell, ...]:
    values = complete(seed_matrix(scores, groups, metric)[0])
    keys = empty_cell(groups).keys
    if not values.size:
        empty = Cell(nothing("no seed has ended in all orders"), keys=keys)
        return (empty, empty, Cell(text="0"), Cell(text="0"))
    found = order_effect(values, scores.level)
    mean = _estimate(found.mean, found.mean_interval, names.METRICS[metric].bounds)
    share = _estimate(found.share, found.share_interval, (0, 1))
    why = "" if min(values.shape) > 1 else "needs two orders and two seeds"
    equal = "runs do not differ" if np.isnan(found.share) else ""
    return (
        Cell(Score(mean, found.seeds, why), keys=keys),
        Cell(Score(share, found.seeds, why or equal), keys=keys),
        Cell(text=str(found.orders)),
        Cell(text=str(found.seeds)),
    )


def _estimate(value: float, interval: Interval, bounds: Interval) -> Estimate:
    low, high = np.clip(interval, *bounds).tolist()
    return known_interval(value, low, high)


def standings(scores: Scores, metric: str = METRICS[0]) -> dict[str, list[Standing]]:
    """Family of orders -> means over orders and seeds, with the mean of each order."""
    found: dict[str, list[Standing]] = {}
    for setting in scores.settings("other"):
        for family, groups in by_family(setting.groups).items():
            values = complete(seed_matrix(scores, groups, metric)[0])
            if len(groups) > 1 and values.size:
                mean = _cells(scores, groups, metric)[0].score
                assert mean is not None
                row = Standing(setting, mean.estimate, values.mean(1))
                found.setdefault(family, []).append(row)
    return found
