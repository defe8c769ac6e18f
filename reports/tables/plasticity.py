"""What plasticity diagnostics were at the end of the first and of the last task."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from cwbench.reports.analysis.plasticity import QUANTITIES, end_values, measures, title
from cwbench.reports.analysis.scores import FREE, Scores, align, nothing
from cwbench.reports.analysis.setups import main_settings
from cwbench.reports.analysis.study import Group, Measure
from cwbench.reports.tables.model import Block, Cell, empty_cell

Array = NDArray[np.float64]
CAPTION = (
    "Plasticity on {title}: diagnostics at the end of the first and of the last task, and how far "
    "they moved. Means over the layers of a network; KL: mean over the earlier tasks."
)
# column -> a run's value from those at its tasks' ends, [R, N] -> [R]
COLUMNS: dict[str, Callable[[Array], Array]] = {
    "First task": lambda ends: ends[:, 0],
    "Last task": lambda ends: ends[:, -1],
    "Change": lambda ends: ends[:, -1] - ends[:, 0],
}


def measured(scores: Scores, family: str) -> list[Group]:
    """The groups that have diagnostics."""
    return [group for group in scores.groups(family) if group.plasticity]


def plasticity(scores: Scores, family: str) -> tuple[Block, ...]:
    """A block for each measure, with a row per method."""
    groups = measured(scores, family)
    settings, sequences = main_settings(groups), len({group.sequence for group in groups})
    blocks = []
    for measure in measures(groups):
        cells = partial(_cells, scores, measure=measure, sequences=sequences)
        rows = [(setting.title, cells(setting.groups)) for setting in settings]
        name = title(measure)
        blocks.append(Block(name[0].upper() + name[1:], "Method", tuple(COLUMNS), tuple(rows)))
    return tuple(blocks)


def _cells(
    scores: Scores, groups: Sequence[Group], measure: Measure, sequences: int
) -> tuple[Cell, ...]:
    if len(groups) < sequences:
        score = nothing(f"measured on {len(groups)} of {sequences} sequences")
    elif not all(measure in group.plasticity for group in groups):
        score = nothing("not measured: the method or its runs do not have it")
    else:
        return tuple(_cell(scores, groups, measure, column) for column in COLUMNS)
    return (replace(empty_cell(groups), any_size=True, score=score),) * len(COLUMNS)


def _cell(scores: Scores, groups: Sequence[Group], measure: Measure, column: str) -> Cell:
    quantity = QUANTITIES[measure[0]]
    ends = [end_values(group, measure, scores.window) for group in groups]
    values = [COLUMNS[column](own)[None] for own in ends]
    cell = empty_cell(groups, [int((~np.isnan(own)).sum()) for own in values])
    if quantity.compares and column != "Last task":
        score = nothing("the first task has no earlier ones")
    else:
        bounds = FREE if column == "Change" else quantity.bounds
        score = scores.mean(*align(groups, values), bounds)
    return replace(cell, any_size=True, score=score)
