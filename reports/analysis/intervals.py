"""Intervals for means over seeds, and for anything computed from such means.

A statistic is a function of *weights*: one row of seed weights in, one value out. Uniform weights
give the estimate, multinomial ones the bootstrap, leave-one-out ones the jackknife. The same code
therefore serves a mean, a ratio of means with two sets of seeds, and a mean over sequences that
share their seeds.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import special

Array = NDArray[np.float64]
# One weight array per group of seeds (method seeds, reference seeds), each [B, seeds] with rows
# that sum to 1; returns [B].
Statistic = Callable[..., Array]

LEVEL = 0.90
RESAMPLES = 4000
INTERVALS = ("bootstrap", "t", "percentile")  # the first is the default


@dataclass(frozen=True)
class Estimate:
    """A value with three intervals: see `estimate`."""

    value: float
    low: float = np.nan  # bootstrap, widened for few seeds
    high: float = np.nan
    t_low: float = np.nan  # Student t on a jackknife error
    t_high: float = np.nan
    percentile_low: float = np.nan  # percentile bootstrap, as published
    percentile_high: float = np.nan
    error: float = np.nan  # the jackknife standard error
    freedom: float = np.nan  # its degrees of freedom

    def ends(self, interval: str = "bootstrap") -> tuple[float, float]:
        """Both ends of an interval of that kind; NaN without one."""
        return {
            "bootstrap": (self.low, self.high),
            "t": (self.t_low, self.t_high),
            "percentile": (self.percentile_low, self.percentile_high),
        }[interval]


def known_interval(value: float, low: float, high: float) -> Estimate:
    """One interval, whichever kind is shown."""
    return Estimate(value, low, high, low, high, low, high)


def seed_means(scores: Array, weights: Array) -> Array:
    """Weighted means over seeds: scores [S, R], weights [B, R] -> [B, S].

    A missing (NaN) score is left out and the others' weights grow; a row without any is NaN.
    """
    known = ~np.isnan(scores)
    if known.all():
        return np.asarray(weights @ scores.T)
    total = weights @ np.where(known, scores, 0.0).T
    share = weights @ known.T
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(share > 1e-12, total, np.nan) / share)


def uniform(seeds: int) -> Array:
    return np.full((1, seeds), 1 / seeds)


def leave_one_out(seeds: int) -> Array:
    """[seeds, seeds]: row s leaves seed s out."""
    return (1 - np.eye(seeds)) / (seeds - 1)


def resampled(seeds: int, resamples: int, rng: np.random.Generator) -> Array:
    """[resamples, seeds]: shares of draws with replacement."""
    picks = rng.integers(seeds, size=(resamples, seeds)) + seeds * np.arange(resamples)[:, None]
    counts = np.bincount(picks.ravel(), minlength=resamples * seeds)
    return np.asarray(counts.reshape(resamples, seeds) / seeds)


Random = np.random.Generator | int  # a generator, or the seed of one that starts here


def draw_weights(seeds: Sequence[int], resamples: int, rng: Random) -> tuple[Array, ...]:
    """Resampled weights of each group of seeds."""
    if isinstance(rng, int):
        return _drawn(tuple(seeds), resamples, rng)
    return tuple(resampled(count, resamples, rng) for count in seeds)


@lru_cache(maxsize=16)
def _drawn(seeds: tuple[int, ...], resamples: int, seed: int) -> tuple[Array, ...]:
    """A report has thousands of intervals, and most of them have equally many seeds."""
    return draw_weights(seeds, resamples, np.random.default_rng(seed))


def percentile_interval(draws: Array, level: float = LEVEL) -> tuple[float, float]:
    """Quantiles with midpoint interpolation, as published. Resamples without data are left out."""
    draws = draws[~np.isnan(draws)]
    if not len(draws):
        return np.nan, np.nan
    tail = (1 - level) / 2
    low, high = np.quantile(draws, [tail, 1 - tail], method="midpoint")
    return float(low), float(high)


def t_quantile(freedom: float, level: float = LEVEL) -> float:
    """Half width of a two-sided t interval in standard errors."""
    return float(special.stdtrit(freedom, (1 + level) / 2))


def jackknife(
    statistic: Statistic, seeds: Sequence[int], fewest: Sequence[int] | None = None
) -> tuple[float, float]:
    """Standard error and Welch-Satterthwaite degrees of freedom.

    For one mean this is the textbook s / sqrt(n) with n - 1 degrees of freedom. Where sequences
    have different numbers of seeds, n is the `fewest` that any of them has in each group.
    """
    fewest = fewest or seeds
    variances = []
    for group, count in enumerate(seeds):
        weights = [uniform(other).repeat(count, 0) for other in seeds]
        weights[group] = leave_one_out(count)
        values = statistic(*weights)
        variances.append((count - 1) * float(np.mean((values - values.mean()) ** 2)))
    total = sum(variances)
    if not total > 0:  # equal seeds, or NaN because one seed holds all the data of a sequence
        return float(np.sqrt(total)), float(min(fewest) - 1)
    parts = sum(v**2 / (count - 1) for v, count in zip(variances, fewest, strict=True))
    return float(np.sqrt(total)), total**2 / parts


def estimate(
    statistic: Statistic,
    seeds: Sequence[int],
    *,
    rng: Random,
    resamples: int = RESAMPLES,
    level: float = LEVEL,
    bounds: tuple[float, float] = (-np.inf, np.inf),
    fewest: Sequence[int] | None = None,
) -> Estimate:
    """The statistic with its intervals; without intervals when a group has fewer than two seeds.

    `seeds` counts the seeds of each group, `fewest` those of the sequence that has fewest of them.
    `bounds` is the range of possible values: it cuts the bootstrap and the t interval, which cannot
    cost coverage.
    """
    value = float(statistic(*map(uniform, seeds))[0])
    if min(fewest or seeds) < 2 or np.isnan(value):
        return Estimate(value)
    draws = statistic(*draw_weights(seeds, resamples, rng))
    error, freedom = jackknife(statistic, seeds, fewest)
    return with_intervals(value, draws, error, freedom, level=level, bounds=bounds)


def with_intervals(
    value: float,
    draws: Array,
    error: float,
    freedom: float,
    *,
    level: float = LEVEL,
    bounds: tuple[float, float] = (-np.inf, np.inf),
) -> Estimate:
    """The three intervals of a value from its resampled values and its jackknife error."""
    reach = t_quantile(freedom, level) * error
    t_low, t_high = np.clip([value - reach, value + reach], *bounds)
    ends = percentile_interval(draws, level)
    # Quantiles of widened draws are the widened quantiles of the draws.
    low, high = np.clip(widened(value, np.array(ends), draws, reach, level), *bounds)
    return Estimate(
        value,
        float(low),
        float(high),
        float(t_low),
        float(t_high),
        *ends,
        error=error,
        freedom=freedom,
    )


def widened(value: float, ends: Array, draws: Array, reach: float, level: float = LEVEL) -> Array:
    """Ends of a percentile interval, spread about the estimate as far as few seeds demand.

    The plain bootstrap of n seeds has a standard deviation too small by sqrt((n - 1) / n), and
    its quantiles are a normal's where t quantiles are due. Both are corrected by one factor,
    t(df) / z * (jackknife error / standard deviation of the draws): the interval keeps the
    bootstrap's asymmetry and gets the width of a t interval.
    """
    spread = float(np.nanstd(draws))
    if not spread > 0:  # equal seeds: nothing to spread
        return ends
    normal_reach = float(special.ndtri((1 + level) / 2)) * spread
    return np.asarray(value + reach / normal_reach * (ends - value))


def mean_estimate(
    scores: Array,
    *,
    rng: Random,
    resamples: int = RESAMPLES,
    level: float = LEVEL,
    bounds: tuple[float, float] = (-np.inf, np.inf),
) -> Estimate:
    """Mean over sequences of the means over seeds; scores [R] or [S, R], where rows share seeds."""
    scores = np.atleast_2d(scores)

    def statistic(weights: Array) -> Array:
        return np.asarray(seed_means(scores, weights).mean(1))

    return estimate(
        statistic,
        [scores.shape[1]],
        rng=rng,
        resamples=resamples,
        level=level,
        bounds=bounds,
        fewest=[int((~np.isnan(scores)).sum(1).min())],
    )
