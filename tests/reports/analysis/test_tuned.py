"""What was chosen by `cwbench tune`, in reports. `tests/experiment/test_tuning.py` has the rest."""

import pytest

from cwbench.reports.analysis.tuned import sensitivity


def test_sensitivity_is_a_mean_over_the_other_options():
    scored = [
        ({"a": 1, "b": 1}, 0.9),
        ({"a": 1, "b": 2}, 0.5),
        ({"a": 2, "b": 1}, 0.3),
        ({"a": 2, "b": 2}, 0.1),
    ]
    assert sensitivity(scored) == {
        "a": {1: pytest.approx(0.7), 2: pytest.approx(0.2)},
        "b": {1: pytest.approx(0.6), 2: pytest.approx(0.3)},
    }
