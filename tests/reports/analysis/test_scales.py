"""Which curves share an axis."""

import numpy as np

from cwbench.reports.analysis.scales import by_scale


def test_curves_a_hundred_times_smaller_have_an_axis_of_their_own():
    curves = [np.array(values) for values in ([0.5, -1.2], [-3e4, np.nan], [9e5, 1.0], [0.02, 0.0])]
    assert by_scale(curves) == [[1, 2], [0, 3]]
    assert by_scale([curve * 1e-9 for curve in curves]) == [[1, 2], [0, 3]]


def test_curves_of_zeros_or_without_values_need_no_axis():
    assert by_scale([np.zeros(2), np.ones(2), np.full(2, np.nan)]) == [[0, 1, 2]]
    assert by_scale([np.zeros(2), np.full(2, np.nan)]) == [[0, 1]]
