"""The figure of switches shows the mean over seeds and sequences."""

from pathlib import Path

import numpy as np
from numpy.testing import assert_allclose
from sample_results import small, write_results

from cwbench.reports import build
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


def test_seeds_without_all_sequences_have_no_line_and_the_figure_says_so(tmp_path: Path):
    """Each seed has ended on one of two sequences."""
    for name, seed in (("cw3-1", 0), ("cw3-2", 1)):
        settings = [small("ewc")]
        write_results(tmp_path, sequence_names=[name], settings=settings, seeds=[seed], name=name)
    study = build.read(tmp_path)
    figure = after_switch(Scores(study, study.protocols[0]), ["cw3"])
    assert not figure.legends
    [text] = figure.axes[0].texts
    said = " ".join(text.get_text().split())
    assert said == "no seed has ended on all sequences with a switch of tasks"
