"""Aggregates and ranks with answers known beforehand."""

import numpy as np
import pytest

from cwbench.reports.analysis import aggregates
from cwbench.reports.analysis.comparison import probability_of_improvement

SCORES = np.array([[0.0, 0.2], [0.4, 1.0]])  # [S, R]


@pytest.mark.parametrize(
    ("name", "value"),
    [("iqm", 0.3), ("median", 0.3), ("mean", 0.4), ("gap", 0.6)],
)
def test_aggregates_of_four_runs(name: str, value: float):
    assert aggregates.aggregate(SCORES, name).value == pytest.approx(value)


def test_scores_above_one_do_not_fill_the_gap_of_others():
    assert aggregates.optimality_gap(np.array([1.5, 0.5])) == pytest.approx(0.25)


def test_ranks_of_three_methods_with_a_tie():
    scores = np.array([[[0.9, 0.9]], [[0.5, 0.9]], [[0.1, 0.1]]])  # [M, S, R]
    assert aggregates.ranks(scores)[:, 0].tolist() == [[1.0, 1.5], [2.0, 1.5], [3.0, 3.0]]
    assert [e.value for e in aggregates.rank_estimates(scores)] == [1.25, 1.75, 3.0]


def test_methods_with_the_same_ranks_on_every_seed_are_told_apart():
    scores = np.array([[[0.9, 0.8, 0.9]], [[0.5, 0.5, 0.6]]])
    assert aggregates.cliques(scores) == []


def test_methods_that_take_turns_are_joined_and_a_worse_one_is_not():
    first, second = [0.9, 0.5, 0.9, 0.5], [0.5, 0.9, 0.5, 0.9]
    scores = np.array([[[0.1] * 4], [first], [second]])
    assert aggregates.cliques(scores) == [(1, 2)]


def test_only_seeds_that_all_methods_finished_are_shared():
    whole = np.array([[1.0, 2.0, 3.0]])
    part = np.array([[np.nan, 5.0, 6.0]])
    found = aggregates.shared([(whole, [0, 1, 2]), (part, [1, 2, 7])])
    assert found.tolist() == [[[3.0]], [[5.0]]]


def test_scores_that_differ_by_rounding_are_tied():
    """0.2 as the mean of the same three numbers in two orders."""
    twice = np.array([[[np.mean([0.1, 0.2, 0.3])]], [[np.mean([0.3, 0.2, 0.1])]]])
    assert twice[0] != twice[1]
    assert aggregates.ranks(twice).ravel().tolist() == [1.5, 1.5]
    assert probability_of_improvement(twice[0], twice[1]) == 0.5
