"""Colours and sizes of figures."""

import numpy as np
from matplotlib import rc_context

from cwbench.reports.figures import style


def test_legends_have_as_many_columns_as_fit():
    six = ["Fine-tuning", "EWC", "PackNet", "ClonEx", "PM", "RECALL"]
    assert style.legend_columns(six, style.TEXT_WIDTH) == 6
    assert style.legend_columns(six, style.COLUMN_WIDTH) == 3
    assert style.legend_columns(["a long name of a method of one's own"] * 9, 3.0) == 1


def test_the_palette_is_told_apart_in_grey():
    """Lines of equal brightness must differ in their dashes."""
    rgb = np.array([[int(c[i : i + 2], 16) for i in (1, 3, 5)] for c in style.COLOURS])
    grey = rgb @ [0.299, 0.587, 0.114]
    for first in range(6):
        for second in range(first):
            same = style.DASHES[first] == style.DASHES[second]
            assert not same or abs(grey[first] - grey[second]) > 60


def test_the_reason_for_an_empty_figure_is_in_it():
    """Whatever its length; no letter is cut off."""
    for why in ("no finished runs", "no seed has ended with WWW on all shared sequences " * 3):
        with rc_context(style.STYLE):
            figure = style.nothing(why)
        [axis] = figure.axes
        [text] = axis.texts
        box, whole = text.get_window_extent(), figure.bbox
        assert whole.x0 < box.x0 < box.x1 < whole.x1 and whole.y0 < box.y0 < box.y1 < whole.y1
        assert text.get_text().split() == why.split()
