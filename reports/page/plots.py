"""Plots as inline SVG in data units: the points drawn are the data, so scripts need no copy.

A plot's inner `svg` has a view box in data units and is stretched to the width of the page; texts
are placed in per cent of it. Nothing here needs scripts or matplotlib.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import floor, isnan, log10

import numpy as np
from numpy.typing import NDArray

from cwbench.reports.analysis.bands import Curve
from cwbench.reports.analysis.setups import PALETTE
from cwbench.reports.tables.formats import number

Array = NDArray[np.float64]
Range = tuple[float, float]
# Dashes of the style sheet's colours; from the ninth line on a colour comes again with other ones.
DASHES = ("none", "7 2", "6 2 2 2", "2 2", "8 3 2 3", "none", "5 3", "1 3")
SLOTS = PALETTE * (len(DASHES) - 1)
NAMED = 6  # tasks that have their names above a plot


@dataclass(frozen=True, eq=False)
class Line:
    """One line with its band. `slot` is its index in the palette."""

    slot: int
    name: str
    x: Array
    curve: Curve
    each: int = 0  # evaluations of a task; 0: x is no course of tasks


@dataclass(frozen=True)
class Axes:
    """What a line plot is drawn on."""

    label: str  # for screen readers, and for the file when it is downloaded
    x: Range
    y: Range = (0.0, 1.0)
    unit: str = ""  # of x
    course: bool = True  # x are steps of training, y is known at evaluations
    height: int = 280  # pixels
    spans: tuple[tuple[float, str], ...] = ()  # end and name of each task


@dataclass(frozen=True)
class Row:
    """A value with its interval, and what it is the mean of."""

    slot: int
    name: str
    value: float
    low: float = float("nan")
    high: float = float("nan")
    dots: tuple[float, ...] = ()
    href: str = ""


def classes(slot: int) -> str:
    """Of the style sheet: a colour, and what is dashed and switched off alike."""
    return f"m{slot % PALETTE} s{slot % SLOTS}"


def _style(slot: int) -> str:
    turn, colour = divmod(slot, PALETTE)
    return (
        f".curves:has(.t{slot}:not(:checked)) :is(.plot, .still) .s{slot} {{ display: none; }}\n"
        f".s{slot} polyline {{ stroke-dasharray: {DASHES[(colour + turn) % len(DASHES)]}; }}\n"
    )


# The legend is style alone, so it works without scripts.
STYLE = "".join(map(_style, range(SLOTS)))


def ticks(low: float, high: float, count: int = 4) -> list[float]:
    """Round numbers inside a range."""
    if not high > low:
        return [low]
    rough = (high - low) / count
    unit = 10.0 ** floor(log10(rough))
    step = next(unit * k for k in (1, 2, 5, 10) if unit * k >= rough * 0.999)
    return [step * k for k in range(int(np.ceil(low / step)), floor(high / step + 1e-9) + 1)]


def short(value: float) -> str:
    """1500000 -> `1.5M`."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g}{letter}"
    return f"{value:.3g}"


def span(values: Sequence[Array]) -> Range:
    """A range that holds all values, with a little room; (0, 1) where there are none."""
    known = np.concatenate([value[np.isfinite(value)] for value in values] or [np.empty(0)])
    if not len(known):
        return 0.0, 1.0
    low, high = float(known.min()), float(known.max())
    room = 0.04 * (high - low) or max(abs(high), 1.0) * 0.1
    return low - room, high + room


def extent(lines: Sequence[Line]) -> list[Array]:
    """All values of the lines, single runs included; bands may leave the plot."""
    return [values for line in lines for values in (line.curve.mean, line.curve.runs.ravel())]


def thin(count: int, points: int, each: int = 0) -> NDArray[np.int64]:
    """Indices of at most `points` of `count` values, the first and the last included.

    Where tasks have `each` values, as many of every task, its first and last included.
    """
    if points >= count:
        return np.arange(count)
    each = each or count
    tasks = -(-count // each)
    inside = np.linspace(0, each - 1, min(max(points // tasks, 2), each)).round().astype(np.int64)
    found = (each * np.arange(tasks)[:, None] + inside).ravel()
    return found[found < count]


def path(x: Array, y: Array) -> str:
    return " ".join(f"{a:.7g},{b:.1f}" for a, b in zip(x, y, strict=True))


def scaled(values: Array, bounds: Range) -> Array:
    """Values as drawn: 1000 is the height, so that one decimal is always enough."""
    low, high = bounds
    return np.asarray(1000 * (values - low) / (high - low))


def line_plot(lines: Sequence[Line], axes: Axes, points: int) -> str:
    """Lines over steps, with bands; at most `points` points a line, or two of each task."""
    body = "".join(_line(line, axes, points) for line in lines)
    count = max(len(line.x) for line in lines)
    drawn = max(len(thin(len(line.x), points, line.each)) for line in lines)
    part = f' data-part="{drawn} of {count} evaluations drawn"' if drawn < count else ""
    left, right = axes.x
    switches = "".join(
        f'<line class="switch" x1="{end:g}" x2="{end:g}" y1="0" y2="1000"/>'
        for end, _ in axes.spans[:-1]
    )
    spans = ";".join(f"{end:g} {name}" for end, name in axes.spans)
    return (
        f'<svg class="plot" role="img" tabindex="0" style="height:{axes.height}px" '
        f'aria-label="{escape(axes.label)}" data-x="{left:g} {right:g}" '
        f'data-y="{axes.y[0]:g} {axes.y[1]:g}" data-unit="{escape(axes.unit)}" '
        f'data-spans="{escape(spans)}"{part}>{y_axis(axes.y)}<g class="xs">{_x_axis(axes)}</g>'
        f"{_task_names(axes)}"
        f'<svg class="area" viewBox="{left:g} -1000 {right - left:g} 1000" '
        f'preserveAspectRatio="none"><g transform="scale(1 -1)">{switches}{body}</g></svg></svg>'
    )


def _line(line: Line, axes: Axes, points: int) -> str:
    curve = line.curve
    known = np.flatnonzero(~np.isnan(curve.mean))
    if not len(known):
        return ""
    drawn = thin(len(line.x), points, line.each)
    # Of an unfinished run the last evaluation, too.
    keep = np.union1d(np.intersect1d(drawn, known), known[[0, -1]])
    x, mean = line.x[keep], scaled(curve.mean[keep], axes.y)
    last = f": {curve.mean[known[-1]]:.3g} at the last evaluation" if axes.course else ""
    parts = [f"<title>{escape(line.name + last)}</title>", _band(line, axes, keep)]
    for run in curve.runs:
        own = keep[~np.isnan(run[keep])]
        parts.append(
            f'<polyline class="run" points="{path(line.x[own], scaled(run[own], axes.y))}"/>'
        )
    parts.append(f'<polyline class="mean" points="{path(x, mean)}"/>')
    name = escape(line.name)
    return f'<g class="{classes(line.slot)}" data-name="{name}">{"".join(parts)}</g>'


def _band(line: Line, axes: Axes, keep: NDArray[np.int64]) -> str:
    keep = keep[~np.isnan(line.curve.low[keep])]
    if not len(keep):
        return ""
    x = line.x[keep]
    low, high = (scaled(end[keep], axes.y) for end in (line.curve.low, line.curve.high))
    return f'<polygon points="{path(x, high)} {path(x[::-1], low[::-1])}"/>'


def y_axis(bounds: Range) -> str:
    out = []
    for value in ticks(*bounds):
        height = f"{100 - scaled(np.array(value), bounds) / 10:.2f}%"
        out.append(f'<line class="grid" x1="0" x2="100%" y1="{height}" y2="{height}"/>')
        out.append(f'<text class="y" x="-6" y="{height}">{short(value)}</text>')
    return "".join(out)


def _x_axis(axes: Axes) -> str:
    """Steps at round numbers; charts.js writes them again for a zoomed range."""
    left, right = axes.x
    return "".join(
        f'<text x="{100 * (value - left) / (right - left):.2f}%" y="100%">{short(value)}</text>'
        for value in ticks(left, right, 6)
    )


def _task_names(axes: Axes) -> str:
    """Above their stretches, where there is room; the tooltip has them always."""
    if len(axes.spans) > NAMED or axes.height < 200:
        return ""
    starts = [axes.x[0], *(end for end, _ in axes.spans)]
    width = axes.x[1] - axes.x[0]
    return "".join(
        f'<text class="task" x="{50 * (start + end) / width:.2f}%" y="-5">{escape(name)}</text>'
        for start, (end, name) in zip(starts, axes.spans, strict=False)
    )


# Rows -----------------------------------------------------------------------------------------


def row_plot(rows: Sequence[Row], bounds: Range, *, title: str) -> str:
    """A table with a strip per row: value, interval and every seed as a dot."""
    low, high = bounds
    marks = ticks(low, high, 5)
    body = "".join(_row(row, bounds, marks) for row in rows)
    axis = "".join(
        f'<text x="{share(value, bounds):.2f}%" y="12">{value:g}</text>' for value in marks
    )
    return (
        f'<div class="scroll forest"><table><caption>{escape(title)}'
        f"</caption><tbody>{body}</tbody><tfoot><tr><td></td><td><svg class=strip "
        f'aria-hidden="true">{axis}</svg></td><td></td></tr></tfoot></table></div>'
    )


def share(value: float, bounds: Range) -> float:
    """Per cent of the width."""
    low, high = bounds
    return float(np.clip(100 * (value - low) / (high - low), 0, 100))


def _row(row: Row, bounds: Range, marks: Sequence[float]) -> str:
    parts = [
        f'<line class="grid" x1="{share(v, bounds):.2f}%" x2="{share(v, bounds):.2f}%" '
        'y1="0" y2="100%"/>'
        for v in marks
    ]
    for index, dot in enumerate(row.dots):
        height = 6 + 12 * (index * 0.618 % 1)  # spread evenly, the same each time
        parts.append(
            f'<circle class="seed" cx="{share(dot, bounds):.2f}%" cy="{height:.1f}" r="3"/>'
        )
    if not isnan(row.low):
        ends = [share(end, bounds) for end in (row.low, row.high)]
        parts.append(f'<line class="reach" x1="{ends[0]:.2f}%" x2="{ends[1]:.2f}%" y1=12 y2=12 />')
    if not isnan(row.value):
        parts.append(f'<circle cx="{share(row.value, bounds):.2f}%" cy="12" r="5"/>')
    name = escape(row.name)
    head = f'<a href="{escape(row.href)}">{name}</a>' if row.href else name
    return (
        f'<tr data-method="{name}"><th scope=row>{head}</th><td><svg class="strip '
        f'{classes(row.slot)}" aria-hidden="true">{"".join(parts)}</svg></td>'
        f"<td>{interval_text(row.value, row.low, row.high)}</td></tr>"
    )


def interval_text(value: float, low: float, high: float) -> str:
    if isnan(value):
        return "–"
    ends = "" if isnan(low) else f" <small>[{number(low)}, {number(high)}]</small>"
    return f"<b>{number(value)}</b>{ends}"
