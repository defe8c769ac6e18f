"""Metrics of a continual run: arrays in, arrays out.

`success` is [R, N, E, N]: run, task in training, evaluation in that task's window, task evaluated.
A number that does not exist (yet) is NaN and makes everything that needs it NaN.
"""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
SUSTAINED = 3  # evaluations whose mean reaches a threshold, too


def default_window(evaluations: int) -> int:
    """Evaluations in an end value: a fifth of the window, as 10 of 50 in the paper's release."""
    return max(1, round(0.2 * evaluations))


def end_values(success: Array, window: int) -> Array:
    """[R, N, E, N] -> [R, N, N]: trained up to task k, tested on i, mean of the last `window`."""
    return np.asarray(success[:, :, -window:].mean(2))


def own_window(success: Array) -> Array:
    """[R, N, E, N] -> [R, N, E]: each task's success while it is the one in training."""
    return np.asarray(np.einsum("rkek->rke", success))


def task_performance(success: Array, window: int) -> Array:
    """[R, N]: success on each task at the end of the run."""
    return end_values(success, window)[:, -1]


def task_forgetting(success: Array, window: int) -> Array:
    """[R, N]: success at the end of a task's own window minus success at the end of the run."""
    end = end_values(success, window)
    return np.asarray(np.einsum("rkk->rk", end) - end[:, -1])


def average_performance(success: Array, window: int) -> Array:
    """[R]"""
    return np.asarray(task_performance(success, window).mean(1))


def forgetting(success: Array, window: int) -> Array:
    """[R]: over all positions, the last one included although it is 0 by construction."""
    return np.asarray(task_forgetting(success, window).mean(1))


def backward_transfer(success: Array, window: int) -> Array:
    """[R]: mean change of the earlier tasks, i.e. without the last; NaN for a single task."""
    change = -task_forgetting(success, window)[:, :-1]
    return np.asarray(change.mean(1)) if change.shape[1] else np.full(len(change), np.nan)


def training_performance(training: Array) -> Array:
    """[R, N, E] -> [R]: success of the last training episodes of each task, the first left out."""
    last = training[:, :, -1]
    return np.asarray(last[:, 1:].mean(1) if last.shape[1] > 1 else last[:, 0])


def worst_task(success: Array, window: int) -> Array:
    """[R]: success on the task that is worst at the end of the run."""
    return np.asarray(task_performance(success, window).min(1))


def anytime_performance(success: Array, window: int) -> Array:
    """[R]: area under the average curve; a task counts as 0 until its training starts."""
    return np.asarray(average_curve(success).mean(1))


def area(success: Array) -> Array:
    """[R, N]: plain mean of the evaluations in each task's own window (no trapezoid, no step 0)."""
    return np.asarray(own_window(success).mean(2))


def task_transfer(mean_area: Array, mean_reference: Array) -> Array:
    """Forward transfer per position from *seed means*, [..., N]: a ratio of means, not of runs.

    NaN where the reference is 1, so that nothing can be gained.
    """
    return _ratio(mean_area - mean_reference, 1 - mean_reference)


def transfer(mean_area: Array, mean_reference: Array) -> Array:
    """Forward transfer, [..., N] -> [...]."""
    return np.asarray(task_transfer(mean_area, mean_reference).mean(-1))


def pooled_transfer(mean_area: Array, mean_reference: Array) -> Array:
    """One ratio for all positions. A task whose reference is near 1 cannot dominate it."""
    return _ratio((mean_area - mean_reference).sum(-1), (1 - mean_reference).sum(-1))


def _ratio(gain: Array, room: Array) -> Array:
    some = room > 1e-9  # a mean of ones may fall short of 1 in the last bit
    return np.asarray(np.where(some, gain / np.where(some, room, 1), np.nan))


def trailing_mean(curve: Array, length: int) -> Array:
    """Mean of the last `length` values along the last axis; fewer at the start."""
    before = np.zeros((*curve.shape[:-1], length - 1))
    # Not differences of running sums: one huge value would wipe out those after it.
    windows = np.lib.stride_tricks.sliding_window_view(
        np.concatenate([before, curve], -1), length, -1
    )
    return np.asarray(windows.sum(-1) / np.minimum(np.arange(1, curve.shape[-1] + 1), length))


def smoothed(curve: Array, evaluations: int, length: int) -> Array:
    """Trailing mean of a curve [..., N * E] that starts again at each task; NaN is left out.

    A mean across a change of task would mix success on two tasks.
    """
    windows = curve.reshape(*curve.shape[:-1], -1, evaluations)
    known = ~np.isnan(windows)
    with np.errstate(invalid="ignore"):
        mean = trailing_mean(np.where(known, windows, 0.0), length)
        mean = mean / trailing_mean(known.astype(float), length)
    return np.asarray(np.where(known, mean, np.nan).reshape(curve.shape))


def evaluations_to_threshold(success: Array, threshold: float) -> Array:
    """[R, N]: the first evaluation that reaches the threshold and begins three whose mean does.

    inf where there is none, NaN where a task has fewer than three. One evaluation has ten episodes:
    at a true rate of 0.6 every sixth shows 0.8 or more by luck.
    """
    curve = own_window(success)
    if curve.shape[-1] < SUSTAINED:
        return np.full(curve.shape[:-1], np.nan)
    means = np.lib.stride_tricks.sliding_window_view(curve, SUSTAINED, -1).mean(-1)
    reached = np.minimum(means, curve[..., : means.shape[-1]]) >= threshold - 1e-9
    count = np.where(reached.any(-1), reached.argmax(-1) + 1.0, np.inf)
    return np.where(np.isnan(curve).any(-1), np.nan, count)


def failed_to_learn(success: Array, window: int, threshold: float) -> Array:
    """[R, N] of 0 and 1: the end value of a task's own window stayed below the threshold."""
    own = np.einsum("rkk->rk", end_values(success, window))
    return np.where(np.isnan(own), np.nan, (own < threshold - 1e-9).astype(float))


def average_curve(success: Array) -> Array:
    """[R, N * E]: mean success over all tasks; a task that was not trained yet counts as 0."""
    runs, tasks, evaluations, _ = success.shape
    unseen = np.triu(np.ones((tasks, tasks), bool), 1)[None, :, None, :]
    return np.asarray(np.where(unseen, 0.0, success).mean(3).reshape(runs, tasks * evaluations))


def task_curves(success: Array) -> Array:
    """[R, N, N * E]: success on each task over the whole run; NaN before its training starts."""
    runs, tasks, evaluations, _ = success.shape
    return np.asarray(np.moveaxis(success.reshape(runs, tasks * evaluations, tasks), 2, 1))
