"""Scatter plots as inline SVG: a point per method, with intervals in both directions."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import floor, isnan, log10

import numpy as np

from cwbench.reports.analysis.labels import spread
from cwbench.reports.page.plots import Range, classes, share, short, span, ticks, y_axis
from cwbench.reports.tables.formats import number
from cwbench.reports.tables.standings import Point

LABEL, LETTER = 5.0, 1.2  # per cent of a plot: a name's height, a letter's width
FLIP = 60  # per cent; names of points further right are left of them


@dataclass(frozen=True)
class Scatter:
    label: str
    x_title: str
    points: Sequence[Point]
    log: bool = False  # x on a logarithmic scale, in bytes


def scatter_plot(plot: Scatter) -> str:
    """Points with interval crosses; published ones are grey, with a line to ours."""
    x_values = [value for point in plot.points for value in point.x if not isnan(value)]
    y_values = [value for point in plot.points for value in point.y if not isnan(value)]
    if plot.log:
        x_values = [log10(value) for value in x_values]
    x_range, y_range = span([np.array(x_values)]), span([np.array([*y_values, 0.0, 1.0])])
    own = {point.method: point for point in plot.points if point.slot >= 0}
    named = [p for p in plot.points if p.slot >= 0 or p.method not in own]
    heights = _label_heights(named, plot, (x_range, y_range))
    labels = dict(zip(map(id, named), heights, strict=True))
    body = "".join(
        _point(point, plot, (x_range, y_range), labels.get(id(point)), own.get(point.method))
        for point in sorted(plot.points, key=lambda point: point.slot >= 0)
    )
    grey = "; grey: published" if len(own) < len(plot.points) else ""
    return (
        f'<figure class="chart scatter"><figcaption><b>{escape(plot.label)}</b></figcaption>'
        f'<svg class="still" role="img" aria-label="{escape(plot.label)}">{y_axis(y_range)}'
        f"{_scatter_ticks(plot, x_range)}{body}</svg>"
        f'<p class="axis">{escape(plot.x_title)} (across), average performance (up){grey}</p>'
        "</figure>"
    )


def _label_heights(
    named: Sequence[Point], plot: Scatter, ranges: tuple[Range, Range]
) -> list[float]:
    """Per cent of the height where names are written: near their points, not on each other."""
    places = []
    for point in named:
        (x, *_), (y, *_) = _position(point, plot, ranges)
        width = LETTER * len(point.method)
        places.append((x - width, x, 100 - y) if x > FLIP else (x, x + width, 100 - y))
    return spread(places, LABEL)


def _scatter_ticks(plot: Scatter, bounds: Range) -> str:
    low, high = bounds
    shown = ticks(low, high)
    if plot.log:
        decades = range(floor(low), floor(high) + 1)
        found = [log10(k) + decade for decade in decades for k in (1, 2, 5)]
        shown = [value for value in found if low <= value <= high]
    return "".join(
        f'<text class="x" x="{share(value, bounds):.2f}%" y="100%">'
        f"{short(10**value) + 'B' if plot.log else f'{value:g}'}</text>"
        for value in shown
    )


def _point(
    point: Point,
    plot: Scatter,
    ranges: tuple[Range, Range],
    label: float | None,
    ours: Point | None,
) -> str:
    """A point with its interval or, if published, a line to ours; `label` is its name's height."""
    (x, left, right), (y, low, high) = _position(point, plot, ranges)
    own = point.slot >= 0
    lines = [(left, y, right, y), (x, low, x, high)]
    if ours and not own:
        (to_x, *_), (to_y, *_) = _position(ours, plot, ranges)
        lines.append((x, y, to_x, to_y))
    cross = "".join(
        f'<line x1="{a:.2f}%" y1="{b:.2f}%" x2="{c:.2f}%" y2="{d:.2f}%"/>'
        for a, b, c, d in lines
        if not isnan(a + b)
    )
    name = "" if label is None else _name(point.method, x, label)
    return (
        f'<g class="{classes(point.slot) if own else "published"}" '
        f'data-method="{escape(point.method)}"><title>{escape(_said(point, plot))}</title>{cross}'
        f'<circle cx="{x:.2f}%" cy="{y:.2f}%" r="{4 if own else 3}"/>{name}</g>'
    )


def _name(method: str, x: float, height: float) -> str:
    """Right of a point, or left of it near the right edge."""
    shift, anchor = ("-9", "end") if x > FLIP else ("9", "start")
    return (
        f'<text x="{x:.2f}%" y="{100 - height:.2f}%" dx="{shift}" dy="-3" '
        f'style="text-anchor:{anchor}">{escape(method)}</text>'
    )


def _position(
    point: Point, plot: Scatter, ranges: tuple[Range, Range]
) -> tuple[list[float], list[float]]:
    """Value, low and high in per cent of the width, and of the height from above."""
    x_range, y_range = ranges
    across = [log10(value) if plot.log else value for value in point.x]
    return (
        [value if isnan(value) else share(value, x_range) for value in across],
        [value if isnan(value) else 100 - share(value, y_range) for value in point.y],
    )


def _said(point: Point, plot: Scatter) -> str:
    across = short(point.x[0]) if plot.log else number(point.x[0])
    where = f"{plot.x_title} {across}, average performance {number(point.y[0])}"
    return f"{point.method}{'' if point.slot >= 0 else ', published'}: {where}"
