"""Colours and sizes of figures."""

import numpy as np

from cwbench.reports.figures import style


def test_the_palette_is_told_apart_in_grey():
    """Lines of equal brightness must differ in their dashes."""
    rgb = np.array([[int(c[i : i + 2], 16) for i in (1, 3, 5)] for c in style.COLOURS])
    grey = rgb @ [0.299, 0.587, 0.114]
    for first in range(6):
        for second in range(first):
            same = style.DASHES[first] == style.DASHES[second]
            assert not same or abs(grey[first] - grey[second]) > 60
