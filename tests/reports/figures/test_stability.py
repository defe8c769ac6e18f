"""The figure of switches shows the mean over seeds and sequences."""

import numpy as np
from numpy.testing import assert_allclose

from cwbench.reports.analysis import stability
from cwbench.reports.analysis.scores import Scores
from cwbench.reports.analysis.study import Study
from cwbench.reports.figures.stability import after_switch


def test_a_line_is_the_mean_change_of_old_tasks(study: Study):
    scores = Scores(study, study.protocols[0])
    [axis] = after_switch(scores, ["cw3"]).axes
    lines = axis.lines[1:]  # the first is at zero
    assert len(lines) == 6
    groups = [g for g in study.of(scores.protocol, "cw3") if g.method == "finetuning"]
    curves = [stability.after_switch(group.complete, scores.window) for group in groups]
    assert_allclose(np.asarray(lines[0].get_ydata(), float), np.mean(curves, axis=(0, 1)))
    assert np.asarray(lines[0].get_xdata())[[0, -1]].tolist() == [1, 10]  # thousand steps
