"""The order of tasks as a factor: a random effect of the order, and seeds within an order.

A score is x_os = mean + order_o + residual_os. Its variance is the order's and the residual's, and
the order's share of it is the intraclass correlation. In this model, with normal effects and
equally many seeds for each order, the intervals below are exact.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from cwbench.reports.analysis.intervals import LEVEL, t_quantile
from cwbench.reports.analysis.study import Group

Array = NDArray[np.float64]
Interval = tuple[float, float]
NONE = (np.nan, np.nan)
EQUAL = 1e-18  # a mean square below is rounding of equal scores


@dataclass(frozen=True)
class OrderEffect:
    """A mean over orders and seeds, and how much of the variance is the order's."""

    mean: float
    share: float
    orders: int
    seeds: int
    mean_interval: Interval = NONE  # over orders and seeds
    share_interval: Interval = NONE


def order_effect(scores: Array, level: float = LEVEL) -> OrderEffect:
    """From scores [orders, seeds] without gaps, by the analysis of variance."""
    orders, seeds = scores.shape
    mean = float(scores.mean())
    if orders < 2 or seeds < 2:
        return OrderEffect(mean, np.nan, orders, seeds)
    between = seeds * float(scores.mean(1).var(ddof=1))
    within = float(scores.var(axis=1, ddof=1).mean())
    between, within = (0.0 if square < EQUAL else square for square in (between, within))
    reach = t_quantile(orders - 1, level) * float(np.sqrt(between / (orders * seeds)))
    mean_interval = (mean - reach, mean + reach)
    if not within > 0:
        return OrderEffect(mean, 1.0 if between else np.nan, orders, seeds, mean_interval)
    ratio, freedom = between / within, (orders - 1, orders * (seeds - 1))
    tails = (1 + level) / 2, (1 - level) / 2
    low, high = (_share(ratio / float(special.fdtri(*freedom, tail)), seeds) for tail in tails)
    return OrderEffect(mean, _share(ratio, seeds), orders, seeds, mean_interval, (low, high))


def _share(ratio: float, seeds: int) -> float:
    """The order's share of the variance from the ratio of mean squares; not below zero."""
    return max(0.0, (ratio - 1) / (ratio + seeds - 1))


def family_of(sequence: str) -> str | None:
    """`orders-cw10-3` is one of `orders-cw10`."""
    match = re.fullmatch(r"(orders-.+)-\d+", sequence)
    return match[1] if match else None


def by_family(groups: Sequence[Group]) -> dict[str, list[Group]]:
    """Families of orders, and the groups of one setting on them."""
    found: dict[str, list[Group]] = {}
    for group in groups:
        if family := family_of(group.sequence):
            found.setdefault(family, []).append(group)
    return found


def complete(values: Array) -> Array:
    """[orders, seeds] of the seeds that have a value in every order."""
    return np.asarray(values[:, ~np.isnan(values).any(0)])
