"""Where methods stand: aggregates, ranks, and performance against transfer and memory."""

from collections.abc import Callable, Sequence
from math import isnan
from textwrap import wrap

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from matplotlib.ticker import EngFormatter, LogLocator, NullFormatter

from cwbench.reports.analysis import names
from cwbench.reports.analysis.aggregates import AGGREGATES
from cwbench.reports.analysis.labels import spread
from cwbench.reports.analysis.scores import Scores
from cwbench.reports.figures.style import (
    MANY,
    TEXT_WIDTH,
    figure_of,
    fitted,
    grid,
    line_style,
    nothing,
    panel_width,
)
from cwbench.reports.tables import standings
from cwbench.reports.tables.standings import Point, Standing

ROW = 0.16  # inches
LABEL, LETTER = 0.09, 0.052  # inches of a point's name: its height, the width of a letter


def draw_rows(axis: Axes, found: Sequence[Standing]) -> None:
    """Names down, values across with their intervals; what they are means of as small dots."""
    for height, row in enumerate(found):
        style, got = line_style(row.setting.slot), row.estimate
        if len(row.runs):
            dots = {"ms": 1.8, "color": style["color"], "alpha": 0.6, "mew": 0}
            axis.plot(row.runs, [height + 0.25] * len(row.runs), "o", **dots)
        if not isnan(got.low):
            axis.hlines(height, got.low, got.high, color=style["color"], lw=2.5, alpha=0.45)
        axis.plot(got.value, height, "o", ms=3.5, color=style["color"])
    shown, points = fitted([row.setting.title for row in found])
    axis.set_yticks(range(len(found)), shown, fontsize=points)
    axis.set_ylim(max(len(found), 1) - 0.5, -0.5)
    axis.tick_params(axis="y", length=0)
    axis.grid(axis="x", lw=0.4, color="0.9")


def aggregates(scores: Scores, families: Sequence[str]) -> Figure:
    """Interquartile mean, median, mean and optimality gap: a row of panels per family."""
    columns = len(AGGREGATES)
    most = max(len(scores.settings(family)) for family in families)
    size = (panel_width(columns, left=0.9, gap=0.15), ROW * max(most, 3))
    margin = (0.9, 0.3, 0.1, 0.35)
    axes = grid(
        columns * len(families), columns=columns, size=size, gap=(0.15, 0.55), margin=margin
    )
    for index, axis in enumerate(axes):
        family, (name, title) = (
            families[index // columns],
            list(AGGREGATES.items())[index % columns],
        )
        draw_rows(axis, standings.aggregate_standings(scores, family, name))
        axis.set_xlim(-0.02, 1.02)
        axis.set_xticks((0, 0.5, 1), ("0", "0.5", "1"))
        axis.set_title(f"{scores.title(family)}: {title}" if not index % columns else title)
        if index % columns:
            axis.tick_params(labelleft=False)
    return figure_of(axes)


def metrics(scores: Scores, family: str) -> Figure:
    """A panel per metric besides performance and forward transfer, every run a dot."""
    found = standings.other_standings(scores, family)
    if not found:
        return nothing("no finished runs")
    most = max(map(len, found.values()))
    size = (panel_width(4, left=0.9, gap=0.15), 1.3 * ROW * max(most, 3))
    axes = grid(len(found), columns=4, size=size, gap=(0.15, 0.55), margin=(0.9, 0.3, 0.1, 0.35))
    for index, (axis, (metric, rows)) in enumerate(zip(axes, found.items(), strict=True)):
        draw_rows(axis, rows)
        axis.locator_params(axis="x", nbins=3)
        axis.set_title("\n".join(wrap(names.METRICS[metric].title, 22)), fontsize=7, y=1.0, pad=3)
        if index % 4:
            axis.tick_params(labelleft=False)
    return figure_of(axes)


def ranks(scores: Scores, families: Sequence[str]) -> Figure:
    """Mean ranks with intervals; a bar joins methods that are not told apart."""
    every = {family: standings.rank_standings(scores, family) for family in families}
    found = {family: one for family, one in every.items() if one[0]}
    if not found:
        return nothing(
            "; ".join({standings.why_unranked(scores, family): 0 for family in families})
        )
    most = max(len(rows) for rows, _ in found.values())
    size = (panel_width(min(2, len(found)), left=0.9, gap=1.0), ROW * max(most, 3))
    axes = grid(len(found), columns=2, size=size, gap=(1.0, 0.7), margin=(0.9, 0.45, 0.3, 0.3))
    for axis, (family, (rows, joined)) in zip(axes, found.items(), strict=True):
        draw_rows(axis, rows)
        height_of = {row.setting.title: height for height, row in enumerate(rows)}
        for index, group in enumerate(joined):
            heights = [height_of[title] for title in group]
            x = len(rows) + 0.35 + 0.15 * index
            axis.vlines(x, min(heights) - 0.2, max(heights) + 0.2, color="black", lw=1.5)
        axis.set_xlim(0.8, len(rows) + 0.4 + 0.15 * len(joined))
        axis.set_title(scores.title(family))
        axis.set_xlabel("mean rank (1 is best)")
    return figure_of(axes)


def tradeoff(
    scores: Scores,
    families: Sequence[str],
    points_of: Callable[[Scores, str], list[Point]],
    title: str,
) -> Figure:
    """Average performance up, something it may cost across; published points are grey."""
    found = {f: points for f in families if (points := points_of(scores, f))}
    if not found:
        return nothing(f"no finished runs with {title}")
    many = max(map(len, found.values())) > 2 * MANY  # published ones included
    columns = 1 if many else min(2, len(found))
    width = TEXT_WIDTH - 0.6 if many else panel_width(columns, left=0.5, gap=0.5)
    size = (width, 3.6 if many else 2.0)
    margin = (0.5, 0.45, 0.1, 0.3)
    axes = grid(len(found), columns=columns, size=size, gap=(0.5, 0.7), margin=margin)
    for axis, (family, points) in zip(axes, found.items(), strict=True):
        own = {point.method: point for point in points if point.slot >= 0}
        published = [point for point in points if point.slot < 0]
        for point in published:
            _published(axis, point, own.get(point.method))
        for point in own.values():
            _cross(axis, point)
        if points_of is standings.against_memory:
            _bytes_across(axis)
        axis.margins(x=0.15)
        axis.set_ylim(-0.02, 1.06)
        _name(axis, list(own.values()), size)
        axis.set_title(scores.title(family) + " (grey: published)" * bool(published))
        axis.set_xlabel(title)
        axis.set_ylabel("average performance")
    return figure_of(axes)


def _cross(axis: Axes, point: Point) -> None:
    colour = line_style(point.slot)["color"]
    (x, left, right), (y, low, high) = point.x, point.y
    if not isnan(left):
        axis.hlines(y, left, right, color=colour, lw=1)
    if not isnan(low):
        axis.vlines(x, low, high, color=colour, lw=1)
    axis.plot(x, y, "o", ms=3.5, color=colour)


def _name(axis: Axes, points: Sequence[Point], size: tuple[float, float]) -> None:
    """Write names next to points, on a panel of this size in inches."""
    shares = axis.transLimits.transform(
        axis.transScale.transform([(point.x[0], point.y[0]) for point in points])
    )
    wide = [LETTER * len(point.method) / size[0] for point in points]
    places = [(x, x + width, y) for (x, y), width in zip(shares, wide, strict=True)]
    heights = spread(places, LABEL / size[1])
    for point, (x, y), height in zip(points, shares, heights, strict=True):
        label = axis.annotate(
            point.method,
            (x, y),
            xycoords="axes fraction",
            xytext=(3, 2 + 72 * size[1] * (height - y)),
            textcoords="offset points",
            fontsize=6,
            color=line_style(point.slot)["color"],
        )
        label.set_path_effects([withStroke(linewidth=1.5, foreground="white")])


def _published(axis: Axes, point: Point, ours: Point | None) -> None:
    """A published mean; a line to ours says whose it is, a name where there is none."""
    x, y = point.x[0], point.y[0]
    axis.plot(x, y, "x", ms=3.5, color="0.65")
    if ours is None:
        axis.annotate(
            point.method,
            (x, y),
            xytext=(3, -6),
            textcoords="offset points",
            fontsize=6,
            color="0.65",
        )
    else:
        axis.plot([x, ours.x[0]], [y, ours.y[0]], ":", lw=0.8, color="0.65", zorder=0)


def _bytes_across(axis: Axes) -> None:
    """A logarithmic axis with round numbers of MB."""
    axis.set_xscale("log")
    axis.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.xaxis.set_major_formatter(EngFormatter("B", sep=" "))
    axis.xaxis.set_minor_formatter(NullFormatter())


TRADEOFFS: dict[str, tuple[Callable[[Scores, str], list[Point]], str]] = {
    "performance-transfer": (standings.against_transfer, "forward transfer"),
    "performance-memory": (standings.against_memory, "replay memory, method and parameters"),
}
