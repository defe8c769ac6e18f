"""Which method beats which: differences of all pairs with their adjusted p values."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cwbench.reports.analysis.scores import Scores
from cwbench.reports.figures.style import MANY, figure_of, fitted, grid, nothing, panel_width
from cwbench.reports.tables import comparisons
from cwbench.reports.tables.formats import signed

METRIC = "average_performance"
CELL = 0.24  # inches that a number needs


def differences(scores: Scores, families: Sequence[str]) -> Figure:
    """A matrix per family: row minus column, and below it Holm's p value."""
    every = {family: comparisons.pairs(scores, family, METRIC) for family in families}
    found = {family: pairs for family, pairs in every.items() if pairs}
    if not found:
        return nothing(comparisons.NO_SEED)
    most = max(len(_titles(pairs)) for pairs in found.values())
    columns = 1 if most > MANY else min(2, len(found))
    side = max(panel_width(columns, left=0.9, gap=1.0), CELL * most)
    margin = (0.9, 0.9, 0.15, 0.45)
    axes = grid(len(found), columns=columns, size=(side, side), gap=(1.0, 1.2), margin=margin)
    for axis, (family, pairs) in zip(axes, found.items(), strict=True):
        _matrix(axis, pairs)
        axis.set_title(f"{scores.title(family)}: average performance,\nrow minus column")
    return figure_of(axes)


def _titles(pairs: Sequence[comparisons.Pair]) -> list[str]:
    return list(dict.fromkeys(title for pair in pairs for title in (pair.first, pair.second)))


def _matrix(axis: Axes, pairs: Sequence[comparisons.Pair]) -> None:
    titles = _titles(pairs)
    values = np.full((len(titles), len(titles)), np.nan)
    for pair, p_value in zip(pairs, comparisons.adjusted(pairs), strict=True):
        first, second = titles.index(pair.first), titles.index(pair.second)
        difference = float(pair.differences.mean())
        for row, column, value in ((second, first, difference), (first, second, -difference)):
            values[row, column] = value
            colour = "white" if abs(value) > 0.6 else "black"
            text = f"{signed(value)}\np {comparisons.p_text(p_value)}"
            axis.text(column, row, text, ha="center", va="center", fontsize=5, color=colour)
    axis.imshow(values, cmap="PuOr", vmin=-1, vmax=1)
    shown, points = fitted(titles)
    axis.set_xticks(range(len(titles)), shown, rotation=60, ha="right", fontsize=points)
    axis.set_yticks(range(len(titles)), shown, fontsize=points)
    axis.spines[:].set_visible(False)
    axis.tick_params(length=0)
