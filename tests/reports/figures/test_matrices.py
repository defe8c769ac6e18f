"""Every pair and every setting is drawn."""

from pathlib import Path

import numpy as np
from sample_results import small, write_results

from cwbench.reports import build
from cwbench.reports.analysis.pairs import matrices
from cwbench.reports.analysis.scores import Scores
from cwbench.reports.analysis.setups import all_settings
from cwbench.reports.figures.matrices import _row, forgetting_matrices, heat, pair_matrices
from cwbench.reports.figures.style import grid


def test_matrices_draw_every_pair_and_hatch_the_rest(pairs: Scores):
    figure = pair_matrices(matrices(pairs, pairs.study.groups))
    first, second, lost = figure.axes[:3]
    assert [len(axis.texts) for axis in (first, second, lost)] == [3, 3, 3]
    assert len(first.patches) == 6  # of the three tasks that occur
    assert first.images[0].cmap.name == second.images[0].cmap.name == "Reds_r"
    assert lost.images[0].cmap.name == "Reds"  # the reversed bar


def test_numbers_are_rounded_as_in_tables():
    """0.125 is 0.13 in a table, so it is 13 %, and 0.25 in a matrix of one decimal 0.3."""
    [axis] = grid(1, size=(1, 1))
    heat(axis, np.array([[0.125]]), "Reds", 1, dark=1, percent=True)
    _row(axis, [np.array([[0.25]])], numbered=True)
    assert [text.get_text() for text in axis.texts] == ["13", "0.3"]


def test_more_than_six_settings_fill_further_lines(tmp_path: Path) -> None:
    settings = [small("ewc", coef=float(coef)) for coef in range(1, 9)]
    write_results(tmp_path, sequence_names=["cw3-1"], settings=settings, seeds=range(1))
    study = build.read(tmp_path)
    scores = Scores(study, study.protocols[0])
    *rows, _bar = forgetting_matrices(scores, all_settings(study.groups)).axes
    titles = [[label.get_text() for label in row.get_xticklabels()] for row in rows]
    assert list(map(len, titles)) == [4, 4] and len({*titles[0], *titles[1]}) == 8
    assert rows[0].get_xlim() == rows[1].get_xlim()
