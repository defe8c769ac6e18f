"""Two methods on shared seeds, and aggregates over many runs. Scores are [S, R]: sequence, seed."""

from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy import special
from scipy.optimize import brentq

from cwbench.reports.analysis.intervals import LEVEL, Estimate, known_interval

Array = NDArray[np.float64]
EXACT_SEEDS = 16  # up to here all 2^n sign patterns are visited
DIGITS = 9  # in which two scores are compared: means of equal successes may differ in the last bit
PROFILES = 500  # resampled profiles that a band is made of
POWER = 0.8  # chance to see a difference, for the number of seeds that it needs


def paired_differences(first: Array, second: Array) -> Array:
    """[R']: first minus second, averaged over sequences, for the seeds where nothing is missing.

    One number per seed: sequences of one seed may share segments, so they are not independent.
    """
    differences = np.atleast_2d(first - second).mean(0)
    return np.asarray(differences[~np.isnan(differences)])


def sign_flip_test(differences: Array, rng: np.random.Generator | None = None) -> float:
    """Two-sided p value of "the differences are symmetric around 0"; NaN without differences.

    Exact for up to 16 seeds; beyond, 100,000 random sign patterns and a generator is required.
    With n seeds no p value can be below 2^(1 - n): 0.0625 for five.
    """
    count = len(differences)
    if count == 0:
        return float("nan")
    if count <= EXACT_SEEDS:
        signs = np.array(list(product((1.0, -1.0), repeat=count)))
    else:
        if rng is None:
            raise ValueError(f"{count} seeds are too many to enumerate: pass a generator")
        signs = rng.choice((1.0, -1.0), size=(100_000, count))
        signs[0] = 1.0  # the pattern that was observed always counts
    sums = np.abs(signs @ differences)
    rounding = 1e-12 * max(1.0, float(np.abs(differences).sum()))
    return float(np.mean(sums >= np.abs(differences.sum()) - rounding))


def holm(p_values: Array) -> Array:
    """Holm's adjusted p values: testing many pairs finds something by chance. NaN stays NaN."""
    p_values = np.asarray(p_values, float)
    known = np.flatnonzero(~np.isnan(p_values))
    order = known[np.argsort(p_values[known], kind="stable")]
    factors = np.arange(len(order), 0, -1)
    adjusted = np.full_like(p_values, np.nan)
    adjusted[order] = np.minimum(1, np.maximum.accumulate(p_values[order] * factors))
    return adjusted


def probability_of_improvement(first: Array, second: Array) -> Array:
    """P(a run of `first` beats one of `second`), ties count half; mean over sequences.

    first [..., S, R], second [..., S, R'] -> [...].
    """
    gap = np.round(first[..., :, None] - second[..., None, :], DIGITS)
    wins = np.where(np.isnan(gap), np.nan, (gap > 0) + 0.5 * (gap == 0))
    return np.asarray(np.nanmean(wins, axis=(-1, -2)).mean(-1))


def improvement_estimate(first: Array, second: Array, level: float = LEVEL) -> Estimate:
    """Probability of improvement with Newcombe's (2006) interval for the Mann-Whitney statistic.

    It holds all probabilities P whose distance to the one observed is at most z standard errors,
    where the error is that of P (Hanley and McNeil), so it has a width at 0 and 1, where resampled
    seeds have none. Sequences share seeds and count as one: with several it is too wide.
    """
    value, seeds = float(probability_of_improvement(first, second)), first.shape[1]
    if seeds < 2 or np.isnan(value):
        return Estimate(value)

    def lower(value: float) -> float:
        def distance(p: float) -> float:
            spread = 1 + (seeds - 1) * ((1 - p) / (2 - p) + p / (1 + p))
            return float(value - p - z * np.sqrt(p * (1 - p) * spread) / seeds)

        return float(brentq(distance, 0, min(value, 1 - 1e-9))) if value > 0 else 0.0

    z = float(special.ndtri((1 + level) / 2))
    return known_interval(value, lower(value), 1 - lower(1 - value))


def iqm(scores: Array) -> Array:
    """Interquartile mean along the last axis: a quarter is cut from each end, rounded down.

    NaN is not a score: the quarter is of those that are known. NaN where none is.
    """
    scores = np.sort(scores, axis=-1)  # NaN last
    known = (~np.isnan(scores)).sum(-1, keepdims=True)
    rank, cut = np.arange(scores.shape[-1]), known // 4
    kept = (rank >= cut) & (rank < known - cut)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(kept, scores, 0.0).sum(-1) / kept.sum(-1))


def profile(scores: Array, thresholds: Array) -> Array:
    """Share of runs whose score exceeds each threshold: the performance profile."""
    known = scores[~np.isnan(scores)]
    return np.asarray(_above(known, thresholds).mean(1))


def _above(scores: Array, thresholds: Array) -> NDArray[np.bool_]:
    """[..., n], [T] -> [..., T, n]; a mean that equals a threshold may differ in the last bit."""
    return np.asarray(np.round(scores[..., None, :] - thresholds[:, None], DIGITS) > 0)


def profile_band(scores: Array, thresholds: Array, level: float = LEVEL) -> tuple[Array, Array]:
    """Pointwise percentile band of a profile; seeds, the columns of [S, R], are resampled.

    NaN with one seed.
    """
    if np.count_nonzero(~np.isnan(scores).all(0)) < 2:
        low, high = np.full((2, len(thresholds)), np.nan)
        return low, high
    picks = np.random.default_rng(0).integers(scores.shape[1], size=(PROFILES, scores.shape[1]))
    drawn = np.moveaxis(scores[:, picks], 0, 1).reshape(PROFILES, -1)
    known = (~np.isnan(drawn)).sum(1)
    above = _above(drawn[known > 0], thresholds).sum(2)
    profiles = above / known[known > 0, None]
    low, high = np.quantile(profiles, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return low, high


def power(difference: float, spread: float, seeds: int, level: float = LEVEL) -> float:
    """Chance that a paired two-sided t test at 1 - level sees a true difference."""
    freedom = seeds - 1
    critical = special.stdtrit(freedom, (1 + level) / 2)
    shift = difference / spread * np.sqrt(seeds)
    above = 1 - special.nctdtr(freedom, shift, critical)
    return float(above + special.nctdtr(freedom, shift, -critical))


def seeds_needed(difference: float, spread: float, *, level: float = LEVEL) -> int:
    """Smallest number of seeds with a power of POWER, given the spread (std) of the differences."""
    seeds, low = 2, 1
    while power(difference, spread, seeds, level) < POWER:
        seeds, low = 2 * seeds, seeds
    while seeds - low > 1:
        middle = (seeds + low) // 2
        if power(difference, spread, middle, level) < POWER:
            low = middle
        else:
            seeds = middle
    return seeds
