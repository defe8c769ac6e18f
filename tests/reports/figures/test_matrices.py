"""Every pair is drawn."""

from cwbench.reports.analysis.pairs import matrices
from cwbench.reports.analysis.scores import Scores
from cwbench.reports.figures.matrices import pair_matrices


def test_matrices_draw_every_pair_and_hatch_the_rest(pairs: Scores):
    figure = pair_matrices(matrices(pairs, pairs.study.groups))
    first, second, lost = figure.axes[:3]
    assert [len(axis.texts) for axis in (first, second, lost)] == [3, 3, 3]
    assert len(first.patches) == 6  # of the three tasks that occur
    assert first.images[0].cmap.name == second.images[0].cmap.name == "Reds_r"
    assert lost.images[0].cmap.name == "Reds"  # the reversed bar
