"""Aggregates and ranks with answers known beforehand."""

import numpy as np
import pytest
from scipy import stats

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
    assert aggregates.aggregate(np.array([[1.5, 0.5]]), "gap").value == pytest.approx(0.25)


@pytest.mark.parametrize("name", ["median", "iqm"])
def test_a_median_of_equal_middle_scores_is_not_certain(name: str):
    """Without any one of these seeds both are 0.5; resampled seeds reach the ends."""
    low, high = aggregates.aggregate(np.array([[0.2, 0.5, 0.5, 0.5, 0.9]]), name).ends()
    assert low < 0.45 and high > 0.55


@pytest.mark.parametrize("name", ["median", "iqm"])
@pytest.mark.parametrize("seeds", [5, 10])
def test_nine_of_ten_intervals_hold_the_true_median(name: str, seeds: int):
    rng = np.random.default_rng(0)
    samples = rng.normal(0.5, 0.1, (300, 1, seeds))
    ends = [aggregates.aggregate(sample, name).ends() for sample in samples]
    assert np.mean([low <= 0.5 <= high for low, high in ends]) > 0.86


def test_the_interval_of_a_mean_would_be_the_textbooks(monkeypatch: pytest.MonkeyPatch):
    """The route of the median, with a statistic whose t interval is known."""
    monkeypatch.setitem(aggregates.ORDERED, "iqm", lambda scores: scores.mean(-1))
    monkeypatch.setattr(aggregates, "RESAMPLES", 50_000)
    scores = np.array([0.61, 0.72, 0.55, 0.80, 0.67])
    want = stats.t.interval(0.9, 4, scores.mean(), stats.sem(scores))
    assert aggregates.aggregate(scores[None], "iqm").ends("t") == pytest.approx(want, abs=0.001)


@pytest.mark.parametrize("name", ["median", "iqm"])
def test_seeds_are_resampled_with_all_their_sequences(name: str):
    """Two sequences on which all seeds are equal: no resample differs."""
    found = aggregates.aggregate(np.array([[0.2] * 4, [0.8] * 4]), name)
    assert (found.value, *found.ends()) == pytest.approx((0.5, 0.5, 0.5))


def test_ranks_of_three_methods_with_a_tie():
    scores = np.array([[[0.9, 0.9]], [[0.5, 0.9]], [[0.1, 0.1]]])  # [M, S, R]
    assert aggregates.ranks(scores)[:, 0].tolist() == [[1.0, 1.5], [2.0, 1.5], [3.0, 3.0]]
    assert [e.value for e in aggregates.rank_estimates(scores)] == [1.25, 1.75, 3.0]


def test_ranks_that_seeds_agree_on_have_no_interval():
    got = aggregates.rank_estimates(np.array([[[0.9, 0.8]], [[0.5, 0.5]]]))
    assert [(e.value, np.isnan(e.low)) for e in got] == [(1, True), (2, True)]


def test_methods_are_told_apart_when_the_sign_flip_test_can():
    """The smallest p value of four seeds is 0.125, that of five 0.0625: one is above 0.1."""
    first, second = np.full((1, 5), 0.9), np.full((1, 5), 0.5)
    assert aggregates.cliques(np.array([first, second])) == []
    assert aggregates.cliques(np.array([first, second])[:, :, :4]) == [(0, 1)]
    assert aggregates.cliques(np.array([first, second]), 1 - 0.0625) == []  # reached is enough


def test_methods_that_take_turns_are_joined_and_a_worse_one_is_not():
    """Six seeds: p = 1/32 for the worse one, times three pairs."""
    first, second = [0.9, 0.5] * 3, [0.5, 0.9] * 3
    scores = np.array([[[0.1] * 6], [first], [second]])
    assert aggregates.cliques(scores) == [(1, 2)]


def test_no_two_methods_of_a_clique_are_told_apart():
    """The first is best in five seeds and worst in two; the second beats the third in all."""
    scores = np.array([[[0.9] * 5 + [0.1] * 2], [[0.5] * 5 + [0.9] * 2], [[0.1] * 5 + [0.5] * 2]])
    assert aggregates.cliques(scores) == [(0, 1)]  # first and third alone would be one, too
    assert aggregates.cliques(scores[[0, 2]]) == [(0, 1)]


def test_equal_methods_are_rarely_told_apart():
    """Of studies with six of them and five seeds, at most one in ten finds a difference."""
    rng = np.random.default_rng(0)
    studies = rng.random((200, 6, 1, 5))
    joined = [aggregates.cliques(scores) == [tuple(order(scores))] for scores in studies]
    assert np.mean(joined) >= 0.9


def order(scores: np.ndarray) -> list[int]:
    mean = aggregates.ranks(scores).mean((1, 2))
    return [int(i) for i in np.argsort(mean, kind="stable")]


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
