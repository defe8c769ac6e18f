"""What a switch of tasks does to the old ones (De Lange et al., 2023)."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from cwbench.reports.analysis.scores import Scores
from cwbench.reports.figures.style import (
    COLUMN_WIDTH,
    TEXT_WIDTH,
    draw_curve,
    figure_of,
    grid,
    legend,
    nothing,
    panel_width,
    room_below,
)
from cwbench.reports.tables import standings


def after_switch(scores: Scores, families: Sequence[str]) -> Figure:
    """Change of success on old tasks over the steps after a switch, a panel per family."""
    found = {
        family: [(s, standings.after_switch(scores, s)) for s in scores.settings(family)]
        for family in families
    }
    families = [f for f in families if any(np.isfinite(c.mean).any() for _, c in found[f])]
    if not families:
        return nothing("no seed has ended on all sequences with a switch of tasks")
    every, columns = scores.joined_settings(families), min(3, len(families))
    slot_of = {setting.setup: setting.slot for setting in every}
    below = room_below(every, COLUMN_WIDTH if columns == 1 else TEXT_WIDTH)
    size = (panel_width(columns, left=0.6, gap=0.35), 1.5)
    axes = grid(len(families), size=size, gap=(0.35, 0.3 + below), margin=(0.6, below, 0.15, 0.3))
    for axis, family in zip(axes, families, strict=True):
        axis.axhline(0, color="0.75", lw=0.6)
        steps = np.concatenate([[0.0], scores.protocol.evaluation_steps / 1000])
        for setting, curve in found[family]:
            draw_curve(axis, steps[1:], curve, slot_of[setting.setup])
        axis.set_xlim(0, steps[-1])
        axis.set_title(scores.title(family))
        axis.set_xlabel("thousand steps after a switch")
    axes[0].set_ylabel("change of old tasks")
    legend(axes, every)
    return figure_of(axes)
