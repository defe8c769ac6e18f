"""The figure of orders shows the numbers of its table."""

import numpy as np
import pytest

from cwbench.reports.analysis.scores import Scores
from cwbench.reports.figures.figures import plan
from cwbench.reports.tables.orders import orders


def test_a_mean_and_a_dot_per_order(with_orders: Scores):
    [axis] = dict(plan(with_orders))["orders"].make().axes
    dots, [mean] = (np.asarray(line.get_xdata(), float) for line in axis.lines)
    assert len(dots) == 3
    assert np.mean(dots) == pytest.approx(mean)
    assert mean == pytest.approx(orders(with_orders)[0].rows[0][1][0].value)
