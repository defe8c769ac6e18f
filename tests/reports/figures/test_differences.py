"""The matrix of differences shows the numbers of the comparison table."""

from pathlib import Path

import numpy as np
import pytest

from cwbench.reports import build
from cwbench.reports.analysis.scores import Scores
from cwbench.reports.figures.differences import differences
from cwbench.reports.tables import comparisons


def test_row_minus_column_of_every_pair(triplets: Path):
    study = build.read(triplets)
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
