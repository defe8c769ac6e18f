"""Figures of standings show the numbers of their tables."""

import numpy as np
import pytest
from matplotlib.lines import Line2D

from cwbench.reports.analysis.names import METRICS
from cwbench.reports.analysis.scores import Scores
from cwbench.reports.analysis.study import Study
from cwbench.reports.figures import figures, standings, style
from cwbench.reports.tables.headline import stacked
from cwbench.reports.tables.standings import aggregate_table


@pytest.fixture(scope="module")
def scores(study: Study) -> Scores:
    return Scores(study, study.protocols[0])


def test_aggregates_and_ranks_are_those_of_the_table(scores: Scores):
    [block] = aggregate_table(scores, "cw3")
    figure = standings.aggregates(scores, ["cw3"])
    for column, axis in enumerate(figure.axes):
        dots = [float(np.asarray(line.get_xdata())[0]) for line in axis.lines]
        assert dots == pytest.approx([cells[column].value for _, cells in block.rows])
    [axis] = standings.ranks(scores, ["cw3"]).axes
    drawn = {
        label.get_text(): line
        for label, line in zip(axis.get_yticklabels(), axis.lines, strict=True)
    }
    for title, cells in block.rows:
        assert np.asarray(drawn[title].get_xdata())[0] == pytest.approx(cells[-1].value)
    assert sum(cells[-1].value for _, cells in block.rows) == pytest.approx(1 + 2 + 3 + 4 + 5 + 6)


def test_every_figure_is_as_wide_as_a_column_or_the_text(scores: Scores):
    """Printed in their own size, fonts keep theirs."""
    for name, planned in figures.plan(scores).items():
        width = planned.make().get_size_inches()[0]
        assert width <= style.TEXT_WIDTH + 0.01, (name, width)


def test_other_metrics_are_those_of_their_tables(scores: Scores):
    axes = dict(figures.plan(scores))["cw3-metrics"].make().axes
    drawn = {axis.get_title().replace("\n", " "): axis for axis in axes}
    assert len(drawn) == 7
    for metric in ("worst_task", "negative_transfer"):
        axis = drawn[METRICS[metric].title]
        runs, dots = (list(map(xs, axis.lines[start::2])) for start in (0, 1))
        assert [len(values) for values in runs] == [10] * 6
        [block] = stacked(scores, "cw3", (metric,))
        assert np.ravel(dots) == pytest.approx([cell.value for cell in block.rows[-1][1]])


def xs(line: Line2D) -> list[float]:
    return list(np.asarray(line.get_xdata(), float))


def test_published_points_are_joined_to_ours(scores: Scores):
    [axis] = dict(figures.plan(scores))["performance-transfer"].make().axes
    joined = [line for line in axis.lines if line.get_linestyle() == ":"]
    crosses = [line for line in axis.lines if line.get_marker() == "x"]
    assert len(joined) == len(crosses) == 6 and "grey: published" in axis.get_title()
    assert [text.get_text() for text in axis.texts].count("RECALL") == 1
