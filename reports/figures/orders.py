"""How much the order of tasks matters."""

from matplotlib.figure import Figure

from cwbench.reports.analysis.scores import Scores
from cwbench.reports.figures.standings import ROW, draw_rows
from cwbench.reports.figures.style import figure_of, grid, nothing, panel_width
from cwbench.reports.tables import orders as table


def orders(scores: Scores) -> Figure:
    """A panel per family of orders: means with intervals over orders and seeds, orders as dots."""
    found = table.standings(scores)
    if not found:
        return nothing("no seed has ended in all orders")
    columns, most = min(2, len(found)), max(map(len, found.values()))
    size = (panel_width(columns, left=0.9, gap=1.0), 1.5 * ROW * max(most, 3))
    axes = grid(len(found), columns=2, size=size, gap=(1.0, 0.8), margin=(0.9, 0.45, 0.15, 0.3))
    for axis, (family, rows) in zip(axes, found.items(), strict=True):
        draw_rows(axis, rows)
        axis.set_xlim(-0.02, 1.02)
        axis.set_title(f"{family}: orders as dots")
        axis.set_xlabel("average performance")
    return figure_of(axes)
