"""The stability gap (De Lange et al., 2023): what happens to old tasks right after a switch.

`success` is [R, N, E, N] as in `metrics`. Single evaluations have few episodes, so curves are
trailing means of three, which restart at each task. The lowest of many such means is below the
success even of a policy that does not change.
"""

import numpy as np
from numpy.typing import NDArray

from cwbench.reports.analysis import metrics

Array = NDArray[np.float64]
SMOOTH = 3
TOLERANCE = 0.1  # an old task counts as dropped this far below its value before the switch


def smooth(success: Array) -> Array:
    """Trailing means within each task's window, [R, N, E, N]."""
    return np.moveaxis(metrics.trailing_mean(np.moveaxis(success, 2, 3), SMOOTH), 3, 2)


def settled(success: Array) -> Array:
    """Only the means of three evaluations, [R, N, E - 2, N]; of all if a window has fewer."""
    return smooth(success)[:, :, _first_whole(success) :]


def _first_whole(success: Array) -> int:
    """The first evaluation of a window that ends a whole mean."""
    return min(SMOOTH, int(success.shape[2])) - 1


def old(tasks: int) -> NDArray[np.bool_]:
    """[N, N]: task i (column) was learned before task k (row) is trained."""
    return np.tril(np.ones((tasks, tasks), bool), -1)


def before_switch(success: Array, window: int) -> Array:
    """[R, N, N]: end value of task i in the window before that of task k; NaN for the first k."""
    end = metrics.end_values(success, window)
    return np.concatenate([np.full_like(end[:, :1], np.nan), end[:, :-1]], axis=1)


def minimum_after_learning(success: Array, window: int) -> Array:
    """[R]: the lowest success of each old task after its own window, averaged over tasks."""
    tasks = success.shape[1]
    if tasks < 2:
        return np.full(len(success), np.nan)
    curves = settled(success)
    lows = [curves[:, task + 1 :, :, task].min((1, 2)) for task in range(tasks - 1)]
    return np.asarray(np.mean(lows, axis=0))


def drop_depth(success: Array, window: int) -> Array:
    """[R]: how far old tasks fall below their value before a switch, at the lowest point of the
    next window, averaged over switches and old tasks; 0 where a task does not fall."""
    low = settled(success).min(2)
    depth = np.maximum(before_switch(success, window) - low, 0)
    return _mean_over_old(depth)


def dropped(success: Array, window: int) -> Array:
    """[R, N, E - 2, N] of 0 and 1: the evaluations of old tasks that are in a drop; NaN where one
    that is needed is missing."""
    level = before_switch(success, window)[:, :, None, :] - TOLERANCE
    curves = settled(success)
    return np.where(np.isnan(curves + level), np.nan, curves < level - 1e-9)


def drop_length(success: Array, window: int) -> Array:
    """[R]: share of the evaluations of old tasks that are in a drop."""
    return _mean_over_old(dropped(success, window).mean(2))


def recoveries(success: Array, window: int) -> Array:
    """One number per drop: evaluations from the switch until the task is back, inf if it is not.

    Drops of all runs together, without runs that lack an evaluation; a task that never falls has
    none.
    """
    pairs = np.moveaxis(dropped(success, window), 2, 3)[:, old(success.shape[1])]
    known = pairs[~np.isnan(pairs).any((1, 2))].astype(bool)  # [R, pairs, E - 2]
    fallen = known[known.any(2)]  # [drops, E - 2]
    after = fallen.shape[1] - fallen[:, ::-1].argmax(1)  # means up to the last one below
    back = after + 1.0 + _first_whole(success)
    return np.where(after < fallen.shape[1], back, np.inf)


def after_switch(success: Array, window: int) -> Array:
    """[R, E]: success on old tasks minus their value before the switch, at each evaluation after
    it; mean over switches and old tasks."""
    change = smooth(success) - before_switch(success, window)[:, :, None, :]
    pairs = np.moveaxis(change, 2, 3)[:, old(success.shape[1])]  # [R, pairs, E]
    if not pairs.shape[1]:
        return np.full((len(success), success.shape[2]), np.nan)
    return np.asarray(pairs.mean(1))


def _mean_over_old(values: Array) -> Array:
    """Values [R, N, N] averaged over the pairs of a switch and an old task, [R]."""
    pairs = values[:, old(values.shape[1])]
    return np.asarray(pairs.mean(1)) if pairs.shape[1] else np.full(len(values), np.nan)
