"""Curves on separate scales: methods that normalise targets have losses near zero."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from cwbench.reports.analysis.setups import Setting, all_settings
from cwbench.reports.analysis.study import Group

Array = NDArray[np.float64]
FAR = 100  # times smaller, and a line cannot be told from zero


def by_scale(curves: Sequence[Array]) -> list[list[int]]:
    """Indices of the curves that one axis can show, the largest values first."""
    reach = [float(np.abs(curve[np.isfinite(curve)]).max(initial=0.0)) for curve in curves]
    found: list[list[int]] = []
    for index in sorted(range(len(curves)), key=lambda index: -reach[index]):
        if found and (not reach[index] or reach[index] * FAR >= reach[found[-1][0]]):
            found[-1].append(index)
        else:
            found.append([index])
    return [sorted(members) for members in found]


def split(settings: Sequence[Setting], runs_of: Callable[[Group], Array]) -> list[list[Setting]]:
    """Settings that one axis can show, the largest values first."""
    curves = [np.concatenate([runs_of(one).ravel() for one in each.groups]) for each in settings]
    return [
        all_settings([group for index in members for group in settings[index].groups])
        for members in by_scale(curves)
    ]
