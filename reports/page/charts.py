"""Curves as inline SVG: small, sharp, without matplotlib and readable with scripts switched off."""

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cwbench.reports.analysis import metrics, names
from cwbench.reports.analysis.bands import Curve, seed_curve
from cwbench.reports.analysis.study import DEFAULTS, Group, Options

Array = NDArray[np.float64]
WIDTH, HEIGHT = 420, 190
LEFT, RIGHT, TOP, BOTTOM = 34, 8, 8, 24
POINTS = 120  # per line: more than the eye resolves at this width

Line = tuple[int, str, Group]  # place in the palette, title, runs


def thin(values: NDArray[Any], points: int = POINTS) -> NDArray[np.int64]:
    """Indices of at most `points` values, the last one included."""
    return np.unique(np.linspace(0, len(values) - 1, points).astype(np.int64))


def path(x: Array, y: Array) -> str:
    return " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))


def frame(group: Group, height: float, ticks: Sequence[tuple[float, str]]) -> list[str]:
    """Axes, labels and task boundaries."""
    bottom = height - BOTTOM
    out = []
    for value, text in ticks:
        out.append(f'<path class="grid" d="M{LEFT} {value:.1f}H{WIDTH - RIGHT}"/>')
        out.append(f'<text x="{LEFT - 5}" y="{value + 3:.1f}" text-anchor="end">{text}</text>')
    count, steps = len(group.tasks), group.protocol.steps
    unit, name = (1e6, "M") if steps * count >= 1e6 else (1e3, "k")
    every = max(1, -(-count // 6))
    for boundary in range(count + 1):
        x = LEFT + (WIDTH - LEFT - RIGHT) * boundary / count
        if 0 < boundary < count:
            out.append(f'<path class="switch" d="M{x:.1f} {TOP}V{bottom}"/>')
        if boundary % every == 0:
            text = f"{boundary * steps / unit:g}{name if boundary else ''}"
            anchor = "end" if boundary == count else "middle"
            out.append(f'<text x="{x:.1f}" y="{bottom + 14}" text-anchor="{anchor}">{text}</text>')
    return out


def horizontal(group: Group) -> Array:
    """Pixel of every evaluation."""
    count = len(group.tasks) * group.protocol.evaluations
    return LEFT + (WIDTH - LEFT - RIGHT) * np.arange(1, count + 1) / count


def _band(curve: Curve, x: Array, keep: NDArray[np.int64], scale: float) -> str:
    keep = keep[~np.isnan(curve.low[keep])]
    low, high = (TOP + scale * (1 - end[keep]) for end in (curve.low, curve.high))
    points = f"{path(x[keep], high)} {path(x[keep][::-1], low[::-1])}"
    return f'<polygon points="{points}"/>' if len(keep) else ""


def _run_line(run: Array, x: Array, keep: NDArray[np.int64], scale: float) -> str:
    keep = keep[~np.isnan(run[keep])]
    points = path(x[keep], TOP + scale * (1 - run[keep]))
    return f'<polyline class="run" points="{points}"/>'


def seed_lines(lines: Sequence[Line], kind: str, options: Options) -> str:
    """Mean over seeds and its band, for each setting."""
    scale = HEIGHT - BOTTOM - TOP
    ticks = [(TOP + scale * (1 - value), f"{value:g}") for value in (0, 0.5, 1)]
    out = frame(lines[0][2], HEIGHT, ticks)
    for slot, title, group in lines:
        runs = (
            metrics.average_curve(group.success)
            if kind == "average"
            else group.training.reshape(len(group.runs), -1)
        )
        curve = seed_curve(runs, group.protocol.evaluations, options.band, options.level)
        known = np.flatnonzero(~np.isnan(curve.mean))
        if not len(known):
            continue
        keep = known[thin(known)]
        x, y = horizontal(group)[keep], TOP + scale * (1 - curve.mean[keep])
        tip = escape(
            f"{title}: {curve.mean[known[-1]]:.2f} at the last evaluation, {len(runs)} seeds"
        )
        parts = [f"<title>{tip}</title>", _band(curve, horizontal(group), keep, scale)]
        parts += [_run_line(run, horizontal(group), keep, scale) for run in curve.runs]
        out.append(f'<g class="m{slot}">{"".join(parts)}<polyline points="{path(x, y)}"/></g>')
    return document(out, HEIGHT, f"{lines[0][2].sequence}: {kind} success")


def task_lines(lines: Sequence[Line]) -> str:
    """Success on each task over the run, one strip per position."""
    group = lines[0][2]
    strip = 24 if len(group.tasks) <= 6 else 14
    height = TOP + BOTTOM + (strip + 3) * len(group.tasks)
    out = frame(group, height, [])
    for position, task in enumerate(group.tasks):
        base = TOP + (strip + 3) * (position + 1)
        out.append(f'<path class="grid" d="M{LEFT} {base}H{WIDTH - RIGHT}"/>')
        out.append(f'<text class="task" x="{LEFT + 3}" y="{base - 3}">{escape(task)}</text>')
    for slot, title, group in lines:
        curves = metrics.task_curves(group.success)
        parts = [f"<title>{escape(title)}</title>"]
        for position in range(len(group.tasks)):
            runs = curves[:, position]
            known = ~np.isnan(runs).all(0)
            if known.any():
                mean = seed_curve(runs, group.protocol.evaluations, "runs").mean
                keep = np.flatnonzero(known)[thin(mean[known], 60)]
                base = TOP + (strip + 3) * (position + 1)
                points = path(horizontal(group)[keep], base - strip * mean[keep])
                parts.append(f'<polyline points="{points}"/>')
        out.append(f'<g class="m{slot}">{"".join(parts)}</g>')
    return document(out, height, f"{group.sequence}: success per task")


def document(parts: Sequence[str], height: float, label: str) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH} {height:.0f}" role="img" aria-label="{escape(label)}">'
        f"{''.join(parts)}</svg>"
    )


def chart(lines: Sequence[Line], options: Options = DEFAULTS) -> str:
    """One sequence: average success, training success and success per task, one shown at a time."""
    kinds = {
        "average": seed_lines(lines, "average", options),
        "current": seed_lines(lines, "current", options),
        "tasks": task_lines(lines),
    }
    group = lines[0][2]
    body = "".join(f'<div class="kind {kind}">{image}</div>' for kind, image in kinds.items())
    title = escape(names.sequence_title(group.sequence))
    tasks = escape(" → ".join(group.tasks))
    return f'<figure class="chart"><figcaption><b>{title}</b> {tasks}</figcaption>{body}</figure>'
