"""Colours, panels and legends that all figures share."""

from collections.abc import Sequence
from textwrap import wrap
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from cwbench.reports.analysis.bands import Curve
from cwbench.reports.analysis.setups import Setting, titles

Array = NDArray[np.float64]
# Okabe and Ito's colours, told apart by colour-blind readers; dashes tell them apart in grey.
COLOURS = ("#000000", "#E69F00", "#56B4E9", "#009E73", "#CC79A7", "#0072B2", "#D55E00", "#999999")
DASHES = ("-", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)), (0, (6, 2, 1, 2)), "-", "--", ":")
WIDTHS = (1.0, 1.2, 1.2, 1.4, 1.2, 1.9, 1.2, 1.2)
# Inches of a two-column page: figures are drawn as wide as they are printed, so fonts keep their
# size. One panel goes into a column, several across the page.
TEXT_WIDTH, COLUMN_WIDTH = 6.75, 3.25
RIGHT = 0.15  # inches beside the last panel
MANY = 8  # settings; more want a panel as wide as the page
LINE, LETTER = 0.55, 0.065  # inches in a legend: a line with the room around it, a letter
STYLE: dict[Any, Any] = {
    "font.size": 8,
    "font.family": "DejaVu Sans",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "axes.titlesize": 8,
    "legend.frameon": False,
    "pdf.fonttype": 42,
    "text.parse_math": False,  # a dollar sign in a method's name is one
    "savefig.dpi": 130,
}


def line_style(index: int) -> dict[str, Any]:
    """Colour, dashes and width; from the ninth on a colour comes again with other dashes."""
    turn, colour = divmod(index, len(COLOURS))
    dashes = DASHES[(colour + turn) % len(DASHES)]
    return {"color": COLOURS[colour], "ls": dashes, "lw": WIDTHS[colour]}


def draw_curve(axis: Axes, x: Array, curve: Curve, index: int) -> None:
    """Mean over seeds with its band; both end where the data end."""
    known = ~np.isnan(curve.mean)
    style = line_style(index)
    for run in curve.runs:
        axis.plot(x, run, **(style | {"lw": 0.5, "alpha": 0.4}))
    axis.plot(x[known], curve.mean[known], **style)
    axis.fill_between(x, curve.low, curve.high, color=str(style["color"]), alpha=0.13, lw=0)


def grid(
    panels: int,
    *,
    columns: int = 3,
    size: tuple[float, float] = (1.8, 1.2),
    gap: tuple[float, float] = (0.35, 0.5),
    margin: tuple[float, float, float, float] = (0.5, 0.7, 0.12, 0.3),
) -> list[Axes]:
    """Axes of a new figure. All sizes in inches; margin is left, bottom, right, top.

    Positions are computed here: matplotlib's layout solver takes longer than the drawing.
    """
    columns = min(columns, panels)
    rows = -(-panels // columns)
    left, bottom, right, top = margin
    width = left + columns * size[0] + (columns - 1) * gap[0] + right
    height = bottom + rows * size[1] + (rows - 1) * gap[1] + top
    figure = Figure(figsize=(width, height))
    axes = []
    for panel in range(panels):
        x = left + (panel % columns) * (size[0] + gap[0])
        y = height - top - size[1] - (panel // columns) * (size[1] + gap[1])
        axes.append(figure.add_axes((x / width, y / height, size[0] / width, size[1] / height)))
    return axes


def panel_width(columns: int, *, left: float, gap: float) -> float:
    """Inches of each panel in a figure with this many columns."""
    whole = COLUMN_WIDTH if columns == 1 else TEXT_WIDTH
    return (whole - left - RIGHT - (columns - 1) * gap) / columns


def figure_of(axes: Sequence[Axes]) -> Figure:
    figure = axes[0].figure
    assert isinstance(figure, Figure)
    return figure


def legend(axes: Sequence[Axes], settings: Sequence[Setting]) -> None:
    """One legend below all panels."""
    handles = [Line2D([], [], **line_style(setting.slot)) for setting in settings]
    figure = figure_of(axes)
    columns = legend_columns(titles(settings), figure.get_size_inches()[0])
    figure.legend(handles, titles(settings), loc="lower center", ncols=columns, handlelength=2.6)


def legend_columns(entries: Sequence[str], width: float) -> int:
    """As many as fit; entries fill one column after the other, as matplotlib has it."""
    for columns in range(len(entries), 1, -1):
        longest = [max(map(len, part)) for part in np.array_split(np.array(entries), columns)]
        if LINE * columns + LETTER * sum(longest) < width:
            return columns
    return 1


def room_below(settings: Sequence[Setting], width: float) -> float:
    """Inches below the panels for the axis title and a legend."""
    rows = -(-len(settings) // legend_columns(titles(settings), width))
    return 0.5 + 0.18 * rows


def fitted(names: Sequence[str], letters: int = 13) -> tuple[list[str], float]:
    """Names along an axis and their size in points: smaller and in two lines if one is long."""
    if max(map(len, names), default=0) <= letters:
        return list(names), 7.0
    return ["\n".join(wrap(name, letters + 1, max_lines=2, placeholder="…")) for name in names], 6.0


def nothing(why: str) -> Figure:
    """A figure that says why it is empty."""
    lines = wrap(why, 42)  # of 2.8 inches
    [axis] = grid(1, size=(2.8, 0.3 + 0.15 * len(lines)))
    axis.set_axis_off()
    axis.text(0.5, 0.5, "\n".join(lines), ha="center", va="center")
    return figure_of([axis])
