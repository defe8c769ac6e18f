"""The matrix of differences shows the numbers of the comparison table."""

import re

import numpy as np
import pytest

from cwbench.reports.analysis.scores import Scores
from cwbench.reports.analysis.study import Study
from cwbench.reports.figures.differences import differences
from cwbench.reports.page import matrices
from cwbench.reports.tables import comparisons


def test_figure_and_page_round_as_tables_do(study: Study, monkeypatch: pytest.MonkeyPatch):
    """A difference of 0.695 is 0.70 everywhere, and one of -0.001 is 0."""
    scores = Scores(study, study.protocols[0])
    zero = np.zeros((1, 1))
    others = {"B": zero + 0.695, "C": zero - 0.001}
    found = [comparisons.Pair("A", name, zero, own, ()) for name, own in others.items()]
    monkeypatch.setattr(comparisons, "pairs", lambda *_: found)
    [axis] = differences(scores, ["cw3"]).axes
    drawn = [text.get_text().split("\n")[0] for text in axis.texts]
    shown = re.findall(r">([-+.\d]+)<br>", matrices.differences(scores, "cw3"))
    assert sorted(drawn) == sorted(shown) == ["+0.70", "-0.70", "0.00", "0.00"]


def test_row_minus_column_of_every_pair(study: Study):
    scores = Scores(study, study.protocols[0], resamples=50)
    [axis] = differences(scores, ["cw3"]).axes
    titles = [label.get_text() for label in axis.get_yticklabels()]
    values = np.asarray(axis.images[0].get_array(), float)
    assert np.isnan(np.diag(values)).all()
    [block] = comparisons.comparisons(scores, "cw3", "average_performance")
    for name, cells in block.rows:
        second, first = (titles.index(part) for part in name.split(" - "))
        assert values[second, first] == pytest.approx(cells[0].value)
        assert values[first, second] == pytest.approx(-cells[0].value)
    assert len(axis.texts) == 2 * len(block.rows) == 30
