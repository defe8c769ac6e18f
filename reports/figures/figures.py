"""Figures for papers, as PDF and PNG."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from cwbench.reports.analysis import comparison, metrics, names
from cwbench.reports.analysis.bands import Curve, seed_curve
from cwbench.reports.analysis.pairs import QUANTITIES, PairMatrices, matrices
from cwbench.reports.analysis.scores import Scores
from cwbench.reports.analysis.setups import Setups, by_setup, main_setups, slots, titles
from cwbench.reports.analysis.study import DEFAULTS, Group, Options
from cwbench.reports.tables.details import seed_matrix
from cwbench.reports.tables.model import score_cell
from cwbench.sequences import CW_TASKS

Array = NDArray[np.float64]
FAMILIES = ("cw3", "cw6", "cw10", "cw20", "other")
# Okabe and Ito's colours, told apart by colour-blind readers; dashes tell them apart in grey.
COLOURS = ("#000000", "#E69F00", "#56B4E9", "#009E73", "#CC79A7", "#0072B2", "#D55E00", "#999999")
DASHES = ("-", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)), (0, (6, 2, 1, 2)), "-", "--", ":")
WIDTHS = (1.0, 1.2, 1.2, 1.4, 1.2, 1.9, 1.2, 1.2)
STYLE: dict[Any, Any] = {
    "font.size": 8,
    "font.family": "DejaVu Sans",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "axes.titlesize": 8,
    "legend.frameon": False,
    "pdf.fonttype": 42,
    "savefig.dpi": 130,
}
# As in the paper, darker red is worse; one hue, so it survives grey and colour blindness.
SUCCESS, LOSS = "Reds_r", "Reds"


# Statistics of training that get figures of their own.
STATISTICS = {
    "critic_loss": "critic loss",
    "q": "Q value",
    "actor_loss": "actor loss",
    "mean_return": "return of training episodes",
}


def line_style(index: int) -> dict[str, Any]:
    index %= len(COLOURS)
    return {"color": COLOURS[index], "ls": DASHES[index], "lw": WIDTHS[index]}


def grid(
    panels: int,
    *,
    columns: int = 3,
    size: tuple[float, float] = (2.2, 1.3),
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


def figure_of(axes: Sequence[Axes]) -> Figure:
    figure = axes[0].figure
    assert isinstance(figure, Figure)
    return figure


def legend(axes: Sequence[Axes], setups: Setups) -> None:
    """One legend below all panels."""
    handles = [Line2D([], [], **line_style(slot)) for slot in slots(setups)]
    figure = figure_of(axes)
    columns = legend_columns(len(setups), figure.get_size_inches()[0])
    figure.legend(handles, titles(setups), loc="lower center", ncols=columns, handlelength=2.6)


def legend_columns(entries: int, width: float) -> int:
    return max(1, min(entries, int(width)))


def room_below(entries: int, width: float) -> float:
    """Inches below the panels for the axis title and a legend of that many entries."""
    rows = -(-entries // legend_columns(entries, width))
    return 0.5 + 0.18 * rows


def step_unit(group: Group) -> tuple[float, str]:
    whole = group.protocol.steps * len(group.tasks)
    return (1e6, "million steps") if whole >= 1e6 else (1e3, "thousand steps")


def steps(group: Group) -> Array:
    """Environment steps of a run's evaluations, in the unit of its axis."""
    protocol = group.protocol
    every = np.arange(1, protocol.evaluations + 1) * protocol.schedule.get("eval_every", 1)
    inside = np.minimum(every, protocol.steps)
    whole = inside + protocol.steps * np.arange(len(group.tasks))[:, None]
    return np.asarray(whole.ravel() / step_unit(group)[0])


def draw_curve(axis: Axes, x: Array, curve: Curve, index: int) -> None:
    """Mean over seeds with its band; both end where the data end."""
    known = ~np.isnan(curve.mean)
    style = line_style(index)
    for run in curve.runs:
        axis.plot(x, run, **(style | {"lw": 0.5, "alpha": 0.4}))
    axis.plot(x[known], curve.mean[known], **style)
    axis.fill_between(x, curve.low, curve.high, color=str(style["color"]), alpha=0.13, lw=0)


def average_runs(group: Group) -> Array:
    return metrics.average_curve(group.success)


def current_runs(group: Group) -> Array:
    """Training success of the task being trained, [R, N * E]."""
    return group.training.reshape(len(group.runs), -1)


def logged_runs(name: str, group: Group) -> Array:
    """A statistic of training, [R, N * E]."""
    return group.logged[name].reshape(len(group.runs), -1)


def panels(setups: Setups, size: tuple[float, float], left: float) -> dict[str, Axes]:
    """Sequence -> its axes with steps across and task boundaries; one alone is drawn larger."""
    groups = {g.sequence: g for members in setups.values() for g in members}
    if len(groups) == 1:
        size = (5.5, 1.5 * size[1])
    width = min(3, len(groups)) * (size[0] + left)
    below = room_below(len(setups), width)
    axes = grid(len(groups), size=size, gap=(left - 0.1, 0.42), margin=(left, below, 0.15, 0.3))
    for index, (axis, group) in enumerate(zip(axes, groups.values(), strict=True)):
        unit, name = step_unit(group)
        for boundary in range(1, len(group.tasks)):
            axis.axvline(boundary * group.protocol.steps / unit, color="0.75", lw=0.6, ls="--")
        axis.set_xlim(0, len(group.tasks) * group.protocol.steps / unit)
        # An explicit y spares matplotlib the search for one, which takes a fifth of the drawing.
        axis.set_title(names.sequence_title(group.sequence), y=1.0, pad=3)
        if index >= len(groups) - 3:
            axis.set_xlabel(name)
        else:
            axis.tick_params(labelbottom=False)
    legend(axes, setups)
    return dict(zip(groups, axes, strict=True))


def curves(
    setups: Setups,
    runs_of: Callable[[Group], Array],
    label: str,
    options: Options = DEFAULTS,
    bounds: tuple[float, float] = (0, 1),
) -> Figure:
    """One panel per sequence, one line per setting."""
    axes = panels(setups, (2.2, 1.3), 0.5 if bounds == (0, 1) else 0.6)
    for slot, groups in zip(slots(setups), setups.values(), strict=True):
        for group in groups:
            each = group.protocol.evaluations
            curve = seed_curve(runs_of(group), each, options.band, options.level, bounds=bounds)
            draw_curve(axes[group.sequence], steps(group), curve, slot)
    for number, axis in enumerate(axes.values()):
        if bounds == (0, 1):
            axis.set_ylim(-0.02, 1.02)
        else:
            axis.ticklabel_format(axis="y", scilimits=(-2, 3))
        if number % 3 == 0:
            axis.set_ylabel(label)
        elif bounds == (0, 1):
            axis.tick_params(labelleft=False)
    return figure_of(list(axes.values()))


def task_curves(setups: Setups) -> Figure:
    """Success on each task over the whole run: a strip per position, a panel per sequence."""
    tasks = {g.sequence: g.tasks for groups in setups.values() for g in groups}
    longest = max(map(len, tasks.values()))
    axes = panels(setups, (2.1, 0.24 * max(longest, 5)), 1.0)
    for slot, groups in zip(slots(setups), setups.values(), strict=True):
        for group in groups:
            curves = metrics.task_curves(group.success)
            each = group.protocol.evaluations
            _strips(axes[group.sequence], steps(group), curves, each, slot)
    for sequence, axis in axes.items():
        count = len(tasks[sequence])
        places = [1.15 * (count - 1 - position) for position in range(count)]
        axis.hlines(places, *axis.get_xlim(), color="0.85", lw=0.5, zorder=0)
        axis.set_yticks([place + 0.5 for place in places], tasks[sequence], fontsize=6)
        axis.tick_params(axis="y", length=0)
        axis.set_ylim(-0.05, 1.15 * count)
    return figure_of(list(axes.values()))


def _strips(axis: Axes, x: Array, curves: Array, evaluations: int, index: int) -> None:
    """Mean curve of each position, [R, N, N * E], drawn above its own base line."""
    for position in range(curves.shape[1]):
        runs = curves[:, position]
        known = ~np.isnan(runs).all(0)
        if known.any():
            mean = seed_curve(runs, evaluations, "runs").mean
            base = 1.15 * (curves.shape[1] - 1 - position)
            axis.plot(x[known], base + mean[known], **(line_style(index) | {"lw": 0.9}))


def pair_matrices(found: PairMatrices) -> Figure:
    """First task, second task, forgetting: 10 x 10 each with the averages and counts in words."""
    axes = grid(3, size=(3.3, 3.1), gap=(0.35, 0), margin=(0.4, 0.4, 0.3, 0.6))
    for axis, (name, title) in zip(axes, QUANTITIES.items(), strict=True):
        values, lost = found.values[name], name == "forgetting"
        high = max(0.3, float(np.nanmax(values, initial=0.3))) if lost else 1.0
        image = heat(axis, values, LOSS if lost else SUCCESS, high, dark=1 if lost else 0)
        ids = range(len(CW_TASKS))
        axis.set_xticks(ids, map(str, ids))
        axis.set_yticks(ids, map(str, ids))
        axis.set_xlabel("second task")
        axis.set_ylabel("first task")
        average = found.averages[name]
        text = average.why if np.isnan(average.value) else f"average {average.value:.2f}"
        axis.set_title(f"{title}, {text}")
        figure_of(axes).colorbar(image, ax=axis, shrink=0.8, pad=0.02, aspect=30)
    counts = "; ".join(f"{name}: {count}" for name, count in found.counts().items())
    figure_of(axes).suptitle(f"{found.title} on {found.pairs} pairs.  {counts}", fontsize=9)
    return figure_of(axes)


def heat(axis: Axes, values: Array, colours: str, high: float, *, dark: int) -> AxesImage:
    """A heat map from 0 to `high` with numbers; hatched where there are no data.

    `dark` is the end of the colour bar, 0 or 1, where numbers must be white.
    """
    image = axis.imshow(values, cmap=colours, vmin=0, vmax=high)
    axis.spines[:].set_visible(False)
    axis.tick_params(length=0)
    for (row, column), value in np.ndenumerate(values):
        if np.isnan(value):
            corner = (column - 0.5, row - 0.5)
            axis.add_patch(Rectangle(corner, 1, 1, hatch="////", fill=False, ec="0.75", lw=0))
            continue
        white = abs(value / high - dark) < 0.35
        text = f"{value:.2f}".replace("-0.00", "0.00")
        colour = "white" if white else "black"
        axis.text(column, row, text, ha="center", va="center", fontsize=5.5, color=colour)
    return image


def forgetting_matrices(scores: Scores, setups: Setups) -> Figure:
    """Trained up to task i (row), tested on task j: one row of matrices per sequence."""
    sequences = list(dict.fromkeys(g.sequence for groups in setups.values() for g in groups))
    longest = max(len(g.tasks) for groups in setups.values() for g in groups)
    cell = 0.26 if longest <= 3 else 1.1 / longest
    size = ((len(setups) * (longest + 1) - 1) * cell, longest * cell)
    axes = grid(len(sequences), columns=1, size=size, gap=(0, 0.12), margin=(0.6, 0.35, 0.8, 0.3))
    for axis, sequence in zip(axes, sequences, strict=True):
        gap = np.full((longest, 1), np.nan)
        blocks = []
        for groups in setups.values():
            own = np.full((longest, longest), np.nan)
            for group in groups:
                if group.sequence == sequence:
                    end = metrics.end_values(group.success, scores.window)
                    known = ~np.isnan(end).all(0)
                    count = len(group.tasks)
                    own[:count, :count][known] = np.nanmean(end[:, known], 0)
            blocks += [own, gap]
        image = axis.imshow(np.hstack(blocks[:-1]), cmap=SUCCESS, vmin=0, vmax=1)
        if longest <= 3 and len(sequences) <= 4:
            for (row, column), value in np.ndenumerate(np.hstack(blocks[:-1])):
                if not np.isnan(value):
                    colour = "white" if value < 0.35 else "black"
                    text = axis.text(column, row, f"{value:.1f}", ha="center", va="center")
                    text.set(fontsize=5, color=colour)
        axis.spines[:].set_visible(False)
        axis.set_yticks([(longest - 1) / 2], [names.sequence_title(sequence)])
        axis.set_xticks([])
        axis.tick_params(length=0)
    middles = [i * (longest + 1) + (longest - 1) / 2 for i in range(len(setups))]
    axes[0].set_xticks(middles, titles(setups))
    axes[0].xaxis.tick_top()
    axes[-1].set_xlabel("in each matrix: trained up to task (down), tested on task (across)")
    figure = figure_of(axes)
    width, height = figure.get_size_inches()
    bar = figure.add_axes(
        (1 - 0.6 / width, 0.35 / height, 0.1 / width, min(2.0, height - 0.8) / height)
    )
    figure.colorbar(image, cax=bar)
    return figure_of(axes)


def bars(scores: Scores, families: Sequence[str], metric: str) -> Figure:
    """Mean over sequences per method with its interval."""
    axes = grid(len(families), columns=4, size=(1.9, 1.6), margin=(0.55, 0.85, 0.1, 0.3))
    for axis, family in zip(axes, families, strict=True):
        groups = scores.study.of(scores.protocol, family)
        setups = main_setups(groups)
        count = len({group.sequence for group in groups})
        for index, (slot, members) in enumerate(zip(slots(setups), setups.values(), strict=True)):
            score = score_cell(scores, members, metric, count).score
            if score is None or np.isnan(score.value):
                axis.text(index, 0, "no data", rotation=90, ha="center", fontsize=6, color="0.5")
                continue
            got = score.estimate
            axis.bar(index, got.value, color=line_style(slot)["color"], alpha=0.85, width=0.7)
            if not np.isnan(got.low):
                axis.vlines(index, got.low, got.high, color="0.25", lw=1.6)
        axis.axhline(0, color="0.3", lw=0.6)
        axis.set_xlim(-0.6, len(setups) - 0.4)
        axis.set_xticks(range(len(setups)), titles(setups), rotation=60, ha="right", fontsize=7)
        axis.set_title(
            f"{names.FAMILIES[family]} ({count} sequences)" if count > 1 else family.upper()
        )
    axes[0].set_ylabel(names.METRICS[metric].title.lower())
    return figure_of(axes)


def strips(scores: Scores, families: Sequence[str]) -> Figure:
    """Every run as a dot: average performance of each seed on each sequence."""
    axes = grid(len(families), columns=4, size=(1.9, 1.6), margin=(0.55, 0.85, 0.1, 0.3))
    for axis, family in zip(axes, families, strict=True):
        setups = main_setups(scores.study.of(scores.protocol, family))
        for index, (slot, members) in enumerate(zip(slots(setups), setups.values(), strict=True)):
            values, _ = seed_matrix(scores, members, "average_performance")
            spots = index + np.linspace(-0.25, 0.25, len(values)) if len(values) > 1 else [index]
            for spot, row in zip(spots, values, strict=True):
                colour = line_style(slot)["color"]
                axis.plot([spot] * len(row), row, "o", ms=2.2, color=colour, alpha=0.6, mew=0)
            if not np.isnan(values).all():
                axis.hlines(np.nanmean(values), index - 0.35, index + 0.35, color="black", lw=1.2)
        axis.set_xticks(range(len(setups)), titles(setups), rotation=60, ha="right", fontsize=7)
        axis.set_ylim(-0.02, 1.02)
        axis.set_title(names.FAMILIES[family])
    axes[0].set_ylabel("average performance of a run")
    return figure_of(axes)


def profiles(scores: Scores, families: Sequence[str]) -> Figure:
    """Share of runs whose average performance exceeds a threshold, with bootstrap bands."""
    found = [main_setups(scores.study.of(scores.protocol, family)) for family in families]
    most = max(found, key=len)
    below = room_below(len(most), min(4, len(families)) * 2.4)
    axes = grid(len(families), columns=4, size=(1.9, 1.5), margin=(0.5, below, 0.1, 0.3))
    thresholds = np.linspace(0, 1, 101)
    for axis, family, setups in zip(axes, families, found, strict=True):
        for slot, members in zip(slots(setups), setups.values(), strict=True):
            values, _ = seed_matrix(scores, members, "average_performance")
            if not np.isnan(values).all():
                share = comparison.profile(values, thresholds)
                low, high = comparison.profile_band(values, thresholds, scores.level)
                style = line_style(slot)
                axis.plot(thresholds, share, **style)
                axis.fill_between(thresholds, low, high, color=style["color"], alpha=0.13, lw=0)
        axis.set_title(names.FAMILIES[family])
        axis.set_xlabel("average performance")
        axis.set_ylim(-0.02, 1.02)
    axes[0].set_ylabel("share of runs above")
    legend(axes, most)
    return figure_of(axes)


def plan(scores: Scores) -> Iterator[tuple[str, Callable[[], Figure]]]:
    """Name and maker of every figure that a protocol's runs can fill."""
    study, protocol = scores.study, scores.protocol
    present = [family for family in FAMILIES if study.of(protocol, family)]
    for groups in by_setup(study.of(protocol, "pairs")).values():
        name = f"pairs-{names.file_name(groups[0].label)}"
        yield name, lambda groups=groups: pair_matrices(matrices(scores, groups))  # type: ignore[misc]
    for family in present:
        groups = study.of(protocol, family)
        setups = main_setups(groups)
        drawn = partial(curves, options=study.options)
        yield f"{family}-average", partial(drawn, setups, average_runs, "average success")
        yield f"{family}-current", partial(drawn, setups, current_runs, "training success")
        for name, label in STATISTICS.items():
            runs_of = partial(logged_runs, name)
            figure = partial(drawn, setups, runs_of, label, bounds=(-np.inf, np.inf))
            yield f"{family}-{name.replace('_', '-')}", figure
        yield f"{family}-tasks", partial(task_curves, setups)
        yield f"{family}-matrices", partial(forgetting_matrices, scores, setups)
        for method in dict.fromkeys(group.method for group in groups):
            settings = by_setup([group for group in groups if group.method == method])
            if len(settings) > 1:
                name = f"{family}-ablation-{names.file_name(method)}"
                yield name, partial(drawn, settings, average_runs, "average success")
    if present:
        yield "transfer", partial(bars, scores, present, "forward_transfer")
        yield "seeds", partial(strips, scores, present)
        yield "profiles", partial(profiles, scores, present)


def draw(scores: Scores, name: str, file: Path) -> None:
    """One figure as PDF and PNG; `file` has no suffix."""
    with matplotlib.rc_context(STYLE):
        figure = dict(plan(scores))[name]()
        for suffix in (".pdf", ".png"):
            figure.savefig(file.with_name(file.name + suffix))
