"""The figure of a choice shows every setting."""

import numpy as np

from cwbench.reports.analysis.scores import Scores
from cwbench.reports.figures.figures import plan


def test_settings_from_the_chosen_one_down(with_orders: Scores):
    figure = dict(plan(with_orders))["tuning-ewc-1"].make()
    [axis] = figure.axes
    dots = [float(np.asarray(line.get_xdata())[0]) for line in axis.lines]
    assert dots == [0.6, 0.4, 0.3, 0.1]
    assert axis.get_yticklabels()[0].get_text().split("\n") == ["coef = 10.0,", "layers = [64]"]
