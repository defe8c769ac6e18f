"""Names of points."""

from cwbench.reports.analysis.labels import spread


def test_names_rise_only_above_names_that_they_would_cover() -> None:
    places = [(0.0, 4.0, 5.0), (3.0, 7.0, 5.5), (8.0, 9.0, 5.0), (2.0, 3.5, 6.5)]
    assert spread(places, 1.0) == [5.0, 6.0, 5.0, 7.0]


def test_names_of_one_point_stand_on_each_other() -> None:
    assert spread([(0.0, 1.0, 0.0)] * 4, 2.0) == [0.0, 2.0, 4.0, 6.0]
