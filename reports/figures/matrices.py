"""Heat maps: pairs of tasks, and success on every task after each."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from cwbench.reports.analysis import metrics, names
from cwbench.reports.analysis.pairs import QUANTITIES, PairMatrices
from cwbench.reports.analysis.scores import Scores
from cwbench.reports.analysis.setups import Setting, titles
from cwbench.reports.analysis.study import Group
from cwbench.reports.figures.style import TEXT_WIDTH, figure_of, fitted, grid
from cwbench.reports.tables.formats import number

Array = NDArray[np.float64]
# As in the paper, darker red is worse; one hue, so it survives grey and colour blindness.
SUCCESS, LOSS = "Reds_r", "Reds"
ACROSS = 6  # matrices in a line, at most
NARROW = 0.16  # inches; two decimals do not fit into cells below


def pair_matrices(found: PairMatrices) -> Figure:
    """First task, second task, forgetting, of the tasks that occur, with averages and counts."""
    rows, columns = found.firsts, found.seconds
    shape = np.ix_(list(rows), list(columns))
    size = (TEXT_WIDTH - 1.3) / 3 - 0.35
    margin = (1.0, 0.95, 0.3, 0.5)
    percent = size / len(columns) < NARROW
    axes = grid(3, size=(size, size * len(rows) / len(columns)), gap=(0.35, 0), margin=margin)
    for axis, (name, title) in zip(axes, QUANTITIES.items(), strict=True):
        values, lost = found.values[name][shape], name == "forgetting"
        high = max(0.3, float(np.nanmax(values, initial=0.3))) if lost else 1.0
        colours = LOSS if lost else SUCCESS
        image = heat(axis, values, colours, high, dark=1 if lost else 0, percent=percent)
        axis.set_xticks(range(len(columns)), list(columns.values()), rotation=90, fontsize=6)
        shown = list(rows.values()) if axis is axes[0] else [""] * len(rows)
        axis.set_yticks(range(len(rows)), shown, fontsize=6)
        axis.set_xlabel("second task")
        average = found.averages[name]
        text = average.why if np.isnan(average.value) else f"average {number(average.value)}"
        unit = " in %" if percent else ""
        axis.set_title(f"{title}{unit},\n{text}", fontsize=7)
        figure_of(axes).colorbar(image, ax=axis, shrink=0.8, pad=0.02, aspect=30)
    axes[0].set_ylabel("first task")
    counts = "; ".join(f"{name}: {count}" for name, count in found.counts().items())
    what = f"{found.pairs} pairs of {found.of}" if found.of else f"{found.pairs} pairs"
    figure_of(axes).suptitle(f"{found.title} on {what}.  {counts}", fontsize=7, y=0.99)
    return figure_of(axes)


def heat(
    axis: Axes, values: Array, colours: str, high: float, *, dark: int, percent: bool = False
) -> AxesImage:
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
        text = number(100 * value, 0) if percent else number(value)
        colour, points = "white" if white else "black", 4.5 if percent else 5.5
        axis.text(column, row, text, ha="center", va="center", fontsize=points, color=colour)
    return image


def forgetting_matrices(scores: Scores, settings: Sequence[Setting]) -> Figure:
    """Trained up to task i (row), tested on task j: rows of matrices, each of one sequence."""
    sequences = list(dict.fromkeys(g.sequence for setting in settings for g in setting.groups))
    longest = max(len(g.tasks) for setting in settings for g in setting.groups)
    lines = -(-len(settings) // ACROSS)
    members = np.array_split(np.arange(len(settings)), lines)
    across = len(members[0]) * (longest + 1) - 1
    cell = min(0.26, 1.1 / longest, (TEXT_WIDTH - 1.4) / across)
    size = (across * cell, longest * cell)
    gap = (0, 0.12 if lines == 1 else 0.3)
    axes = grid(lines * len(sequences), columns=1, size=size, gap=gap, margin=(0.6, 0.35, 0.8, 0.3))
    shown, points = fitted(titles(settings), int(15 * (longest + 1) * cell))  # 15 letters an inch
    for index, axis in enumerate(axes):
        own, sequence = members[index // len(sequences)], sequences[index % len(sequences)]
        blocks = [_end_matrix(scores, settings[i].groups, sequence, longest) for i in own]
        image = _row(axis, blocks, numbered=longest <= 3 and len(sequences) <= 4)
        axis.set_xlim(-0.5, across - 0.5)  # the last line may be shorter
        axis.set_yticks([(longest - 1) / 2], [names.sequence_title(sequence)])
        if index % len(sequences) == 0:
            middles = [i * (longest + 1) + (longest - 1) / 2 for i in range(len(own))]
            axis.set_xticks(middles, [shown[i] for i in own], fontsize=points)
            axis.xaxis.tick_top()
            axis.tick_params(length=0)
    axes[-1].set_xlabel("in each matrix: trained up to task (down), tested on task (across)")
    figure = figure_of(axes)
    width, height = figure.get_size_inches()
    bar = figure.add_axes(
        (1 - 0.6 / width, 0.35 / height, 0.1 / width, min(2.0, height - 0.8) / height)
    )
    figure.colorbar(image, cax=bar)
    return figure


def _end_matrix(scores: Scores, groups: Sequence[Group], sequence: str, longest: int) -> Array:
    """A setting's mean success on every task after each task of a sequence."""
    own = np.full((longest, longest), np.nan)
    for group in groups:
        if group.sequence == sequence:
            end = metrics.end_values(group.latest, scores.window)
            known = ~np.isnan(end).all(0)
            count = len(group.tasks)
            own[:count, :count][known] = np.nanmean(end[:, known], 0)
    return own


def _row(axis: Axes, blocks: Sequence[Array], *, numbered: bool) -> AxesImage:
    """Matrices next to each other, an empty column between them."""
    gap = np.full((len(blocks[0]), 1), np.nan)
    values = np.hstack([part for block in blocks for part in (block, gap)][:-1])
    image = axis.imshow(values, cmap=SUCCESS, vmin=0, vmax=1)
    for (row, column), value in np.ndenumerate(values):
        if numbered and not np.isnan(value):
            colour = "white" if value < 0.35 else "black"
            text = axis.text(column, row, number(value, 1), ha="center", va="center")
            text.set(fontsize=5, color=colour)
    axis.spines[:].set_visible(False)
    axis.set_xticks([])
    axis.tick_params(length=0)
    return image
