"""How much a method's options matter, as `cwbench tune` saw it."""

from collections.abc import Mapping
from typing import Any

from matplotlib.figure import Figure

from cwbench.reports.figures.standings import ROW, draw_rows
from cwbench.reports.figures.style import figure_of, grid, panel_width
from cwbench.reports.tables import tuning as table


def tuning(record: Mapping[str, Any]) -> Figure:
    """Every setting with its mean anytime performance and interval, the chosen one on top."""
    rows = table.standings(record)
    size = (panel_width(1, left=1.3, gap=0), ROW * max(len(rows), 3))
    axes = grid(1, size=size, margin=(1.3, 0.45, 0.15, 0.3))
    draw_rows(axes[0], rows)
    axes[0].set_title(table.title(record), loc="right")
    axes[0].set_xlabel("mean anytime performance")
    return figure_of(axes)
