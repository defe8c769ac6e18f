"""One number for many runs, and ranks of methods. Scores are [S, R]: sequence, seed.

Seeds are resampled with all their sequences, as everywhere in a report.
"""

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from cwbench.reports.analysis.comparison import DIGITS, holm, iqm, sign_flip_test
from cwbench.reports.analysis.intervals import LEVEL, Estimate, mean_estimate, with_intervals

Array = NDArray[np.float64]
RESAMPLES = 1000


def _median(scores: Array) -> Array:
    return np.asarray(np.median(scores, axis=-1))


AGGREGATES = {
    "iqm": "Interquartile mean",
    "median": "Median",
    "mean": "Mean",
    "gap": "Optimality gap",
}
# Of all runs' scores along the last axis; the other aggregates are plain means.
ORDERED = {"iqm": iqm, "median": _median}


def aggregate(scores: Array, name: str, level: float = LEVEL) -> Estimate:
    """One of AGGREGATES over all runs of [S, R], without NaN, with its intervals."""
    if name not in ORDERED:  # the optimality gap (Agarwal et al., 2021): what is missing to 1
        return _mean(np.maximum(1 - scores, 0) if name == "gap" else scores, level, (0, 1))
    value, seeds = float(ORDERED[name](scores.ravel())), scores.shape[1]
    if seeds < 2:
        return Estimate(value)
    picks = np.random.default_rng(0).integers(seeds, size=(RESAMPLES, seeds))
    draws = ORDERED[name](np.moveaxis(scores[:, picks], 0, 1).reshape(RESAMPLES, -1))
    # The bootstrap's error, corrected for few seeds: the jackknife fails for medians.
    error = float(np.std(draws) * np.sqrt(seeds / (seeds - 1)))
    return with_intervals(value, draws, error, seeds - 1, level=level, bounds=(0, 1))


def _mean(scores: Array, level: float, bounds: tuple[float, float]) -> Estimate:
    return mean_estimate(scores, rng=0, level=level, bounds=bounds)


def ranks(scores: Array) -> Array:
    """[M, S, R] -> [M, S, R]: rank among the methods, 1 for the best score; ties share ranks."""
    scores = np.round(scores, DIGITS)
    better = (scores[:, None] < scores).sum(1)  # methods above each
    equal = (scores[:, None] == scores).sum(1)  # itself included
    return np.asarray(better + (equal + 1) / 2)


def rank_estimates(scores: Array, level: float = LEVEL) -> list[Estimate]:
    """Mean rank of each method from [M, S, R] without NaN.

    Few seeds often rank a method alike. That is no evidence that all would: no interval.
    """
    found = []
    for ranked in ranks(scores):  # a seed's ranks do not depend on other seeds
        got = _mean(ranked, level, (1, len(scores)))
        found.append(got if got.error > 1e-9 else Estimate(got.value))
    return found


def cliques(scores: Array, level: float = LEVEL) -> list[tuple[int, ...]]:
    """Methods that are not told apart, best first, as in a critical-difference diagram.

    Two methods are told apart by the sign-flip test of their ranks' differences over seeds,
    adjusted for the number of pairs. A clique is a stretch of the ranking with no such pair;
    stretches within others are left out.
    """
    per_seed = ranks(scores).mean(1)  # [M, R]
    order = [int(i) for i in np.argsort(per_seed.mean(1), kind="stable")]
    last = len(order) - 1
    pairs = list(combinations(range(len(order)), 2))  # places in the ranking
    rng = np.random.default_rng(0)
    tests = [sign_flip_test(per_seed[order[b]] - per_seed[order[a]], rng) for a, b in pairs]
    adjusted = dict(zip(pairs, holm(np.array(tests)), strict=True))
    apart = {pair for pair, p_value in adjusted.items() if p_value <= 1 - level + 1e-12}

    found: list[tuple[int, int]] = []
    for start in range(len(order)):
        end = start
        while end < last and not any((k, end + 1) in apart for k in range(start, end + 1)):
            end += 1
        if end > start and not any(a <= start and end <= b for a, b in found):
            found.append((start, end))
    return [tuple(order[a : b + 1]) for a, b in found]


def shared(matrices: Sequence[tuple[Array, list[int]]]) -> Array:
    """[M, S, R] of the seeds that every method has finished on all sequences."""
    seeds = set.intersection(*(set(seeds) for _, seeds in matrices)) if matrices else set()
    common = sorted(seeds)
    stacked = np.array([values[:, [own.index(s) for s in common]] for values, own in matrices])
    whole = ~np.isnan(stacked).any((0, 1)) if stacked.size else np.zeros(0, bool)
    return np.asarray(stacked[:, :, whole]) if stacked.size else np.empty((len(matrices), 0, 0))
