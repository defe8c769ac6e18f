"""Curves of runs, with bands: how sure a mean over seeds is, evaluation by evaluation."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from cwbench.reports.analysis import metrics
from cwbench.reports.analysis.intervals import LEVEL, resampled, seed_means
from cwbench.reports.analysis.study import Group

Array = NDArray[np.float64]
BANDS = {  # and what readers are told; the first is the default
    "interval": "Bands: {level:g} % t intervals over seeds.",
    "percentile": "Bands: {level:g} % percentile bootstrap over seeds.",
    "sd": "Bands: one standard deviation over seeds.",
    "runs": "Thin lines: single runs.",
}
RESAMPLES = 500
SMOOTH = 3  # evaluations


@dataclass(frozen=True, eq=False)
class Curve:
    """A mean over seeds with its band; single runs instead of a band if those were chosen."""

    mean: Array  # [X]
    low: Array
    high: Array
    runs: Array  # [R, X]


def average_runs(group: Group) -> Array:
    """Average success, [R, N * E]."""
    success = group.sound(group.success)
    if group.joint:  # every task is trained from the start
        return np.asarray(metrics.task_curves(success).mean(1))
    return metrics.average_curve(success)


def current_runs(group: Group) -> Array:
    """Training success of the task being trained, [R, N * E]."""
    return group.sound(group.training).reshape(len(group.runs), -1)


def logged_runs(name: str, group: Group) -> Array:
    """A statistic of training, [R, N * E]."""
    return group.sound(group.logged[name]).reshape(len(group.runs), -1)


def smoothing(evaluations: int) -> int:
    """Evaluations in the trailing mean of a curve: three, or a fifth of a task's if fewer."""
    return min(SMOOTH, max(1, evaluations // 5))


def seed_curve(
    runs: Array,
    evaluations: int,
    band: str,
    level: float = LEVEL,
    *,
    smooth: int | None = None,
    bounds: tuple[float, float] = (0, 1),
) -> Curve:
    """Runs [R, N * E], smoothed within each task, become a mean with its band.

    interval: Student t over seeds; percentile: bootstrap of the mean; sd: one standard deviation,
    from n - 1; runs: no band, every run is drawn.
    """
    runs = metrics.smoothed(runs, evaluations, smooth or smoothing(evaluations))
    count = (~np.isnan(runs)).sum(0)
    mean = seed_means(runs.T, np.full((1, len(runs)), 1 / len(runs)))[0]
    low, high = np.full((2, len(mean)), np.nan)
    several = count > 1
    if band == "percentile" and several.any():
        weights = resampled(len(runs), RESAMPLES, np.random.default_rng(0))
        draws = seed_means(runs[:, several].T, weights)
        ends = (1 - level) / 2, (1 + level) / 2
        low[several], high[several] = np.nanquantile(draws, ends, axis=0)
    elif band in ("interval", "sd"):
        with np.errstate(invalid="ignore", divide="ignore"):
            squares = np.nansum((runs - mean) ** 2, axis=0)
            deviation = np.sqrt(squares / (count - 1))
            width = special.stdtrit(count - 1, (1 + level) / 2) / np.sqrt(count)
            reach = deviation * width if band == "interval" else deviation
        low, high = mean - reach, mean + reach
    low, high = (np.where(several, np.clip(end, *bounds), np.nan) for end in (low, high))
    return Curve(mean, low, high, runs if band == "runs" else runs[:0])
