"""One number for many runs, and ranks of methods. Scores are [S, R]: sequence, seed.

Seeds are resampled with all their sequences, as everywhere in a report.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from cwbench.reports.analysis.comparison import DIGITS, iqm
from cwbench.reports.analysis.intervals import LEVEL, Estimate, estimate_of_picks

Array = NDArray[np.float64]
Picks = NDArray[np.int64]
RESAMPLES = 1000


def optimality_gap(scores: Array) -> Array:
    """Mean shortfall from 1 along the last axis (Agarwal et al., 2021)."""
    return np.asarray(np.maximum(1 - scores, 0).mean(-1))


def _median(scores: Array) -> Array:
    return np.asarray(np.median(scores, axis=-1))


def _mean(scores: Array) -> Array:
    return np.asarray(scores.mean(-1))


# name -> (title, function of all runs' scores along the last axis, sign)
AGGREGATES: dict[str, tuple[str, Callable[[Array], Array], int]] = {
    "iqm": ("Interquartile mean", iqm, 1),
    "median": ("Median", _median, 1),
    "mean": ("Mean", _mean, 1),
    "gap": ("Optimality gap", optimality_gap, -1),
}


def aggregate(scores: Array, name: str, level: float = LEVEL) -> Estimate:
    """One of AGGREGATES over all runs of [S, R], without NaN, with its intervals."""
    combine = AGGREGATES[name][1]

    def statistic(picks: Picks) -> Array:
        return combine(np.moveaxis(scores[:, picks], 0, 1).reshape(len(picks), -1))

    return _estimate(statistic, scores.shape[1], level, (0, 1))


def ranks(scores: Array) -> Array:
    """[M, S, R] -> [M, S, R]: rank among the methods, 1 for the best score; ties share ranks."""
    scores = np.round(scores, DIGITS)
    better = (scores[:, None] < scores).sum(1)  # methods above each
    equal = (scores[:, None] == scores).sum(1)  # itself included
    return np.asarray(better + (equal + 1) / 2)


def rank_estimates(scores: Array, level: float = LEVEL) -> list[Estimate]:
    """Mean rank of each method from [M, S, R] without NaN."""
    # A seed's ranks do not depend on other seeds, so they are taken before resampling.
    return [_rank_mean(own, level, (1, len(scores))) for own in ranks(scores)]


def _rank_mean(ranked: Array, level: float, bounds: tuple[float, float]) -> Estimate:
    """Mean of [S, R] over sequences and seeds."""
    per_seed = ranked.mean(0)
    return _estimate(lambda picks: per_seed[picks].mean(1), len(per_seed), level, bounds)


def cliques(scores: Array, level: float = LEVEL) -> list[tuple[int, ...]]:
    """Methods that are not told apart, best first, as in a critical-difference diagram.

    Two methods are told apart if the interval of the difference of their mean ranks does not hold
    0. A clique is a stretch of the ranking with no such pair; stretches within others are left out.
    """
    ranked = ranks(scores)
    order = [int(i) for i in np.argsort(ranked.mean((1, 2)), kind="stable")]
    last = len(ranked) - 1
    widest = (-np.inf, np.inf)

    def apart(first: int, second: int) -> bool:
        gap = _rank_mean(ranked[second] - ranked[first], level, widest)
        return bool(gap.low > 0 or gap.high < 0)

    found: list[tuple[int, int]] = []
    for start in range(len(order)):
        end = start
        while end < last and not any(
            apart(order[k], order[end + 1]) for k in range(start, end + 1)
        ):
            end += 1
        if end > start and not any(a <= start and end <= b for a, b in found):
            found.append((start, end))
    return [tuple(order[a : b + 1]) for a, b in found]


def _estimate(
    statistic: Callable[[Picks], Array], seeds: int, level: float, bounds: tuple[float, float]
) -> Estimate:
    rng = np.random.default_rng(0)
    return estimate_of_picks(
        statistic, seeds, rng=rng, resamples=RESAMPLES, level=level, bounds=bounds
    )


def shared(matrices: Sequence[tuple[Array, list[int]]]) -> Array:
    """[M, S, R] of the seeds that every method has finished on all sequences."""
    seeds = set.intersection(*(set(seeds) for _, seeds in matrices)) if matrices else set()
    common = sorted(seeds)
    stacked = np.array([values[:, [own.index(s) for s in common]] for values, own in matrices])
    whole = ~np.isnan(stacked).any((0, 1)) if stacked.size else np.zeros(0, bool)
    return np.asarray(stacked[:, :, whole]) if stacked.size else np.empty((len(matrices), 0, 0))
