"""Comparisons of methods against enumeration and closed forms."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from cwbench.reports.analysis import comparison


def test_sign_flip_of_known_differences():
    # |1 + 2 + 3| is reached by +++ and --- only: 2 of 8 patterns.
    assert comparison.sign_flip_test(np.array([1.0, 2.0, 3.0])) == 0.25
    # |1 - 1 + 0| = 0 is reached by all.
    assert comparison.sign_flip_test(np.array([1.0, -1.0, 0.0])) == 1.0


def test_sign_flip_matches_scipy():
    differences = np.array([0.3, -0.1, 0.2, 0.25, 0.05, -0.02])
    want = stats.permutation_test(
        (differences,), np.mean, permutation_type="samples", n_resamples=1000
    ).pvalue
    assert comparison.sign_flip_test(differences) == pytest.approx(want)


def test_five_seeds_cannot_go_below_one_in_sixteen():
    assert comparison.sign_flip_test(np.full(5, 0.4)) == 2 / 32


def test_rounding_does_not_decide_the_sign_flip_test():
    """Transfer against a reference near 1 can be large; equal scores may differ in the last bit."""
    assert comparison.sign_flip_test(np.full(5, 1e-16)) == 1
    for seed in range(20):
        differences = np.random.default_rng(seed).uniform(0.1, 1, 9)
        for size in (1.0, 1e7):
            assert comparison.sign_flip_test(size * differences) == 2**-8


def test_random_signs_agree_with_all_signs(monkeypatch: pytest.MonkeyPatch):
    differences = np.random.default_rng(0).normal(0.1, 0.3, 12)
    exact = comparison.sign_flip_test(differences)
    monkeypatch.setattr(comparison, "EXACT_SEEDS", 11)
    # 100,000 patterns: standard error at most 0.0016
    sampled = comparison.sign_flip_test(differences, np.random.default_rng(1))
    assert sampled == pytest.approx(exact, abs=0.008)
    # What was observed is a pattern, too: no p value is zero. Here it is one of 2^29 pairs.
    monkeypatch.undo()
    assert comparison.sign_flip_test(np.ones(30), np.random.default_rng(1)) == 1e-5
    monkeypatch.setattr(comparison, "EXACT_SEEDS", 11)
    with pytest.raises(ValueError, match="pass a generator"):
        comparison.sign_flip_test(differences)


def test_differences_drop_seeds_that_one_method_lacks():
    first = np.array([[0.5, 0.7, np.nan], [0.9, 0.9, 0.9]])
    second = np.array([[0.4, 0.5, 0.1], [0.9, 0.8, 0.1]])
    assert_allclose(comparison.paired_differences(first, second), [0.05, 0.15])


def test_probability_of_improvement_counts_ties_half():
    first, second = np.array([[0.5, 0.9]]), np.array([[0.5, 0.1]])
    assert comparison.probability_of_improvement(first, second) == (0.5 + 1 + 1 + 1) / 4
    assert comparison.probability_of_improvement(second, first) == 0.5 / 4
    nan = np.nan  # sequences count alike, however many seeds they have
    first, second = np.array([[0.5, nan], [0.5, 0.9]]), np.array([[0.1, nan], [0.5, 0.1]])
    assert comparison.probability_of_improvement(first, second) == (1 + 3.5 / 4) / 2


def test_probability_of_improvement_is_mann_whitney():
    generator = np.random.default_rng(2)
    first, second = generator.normal(0.2, 1, 7), generator.normal(0, 1, 7)
    want = stats.mannwhitneyu(first, second).statistic / 49
    assert comparison.probability_of_improvement(first[None], second[None]) == pytest.approx(want)


@pytest.mark.parametrize("seeds", [2, 5, 20])
def test_a_sure_winner_of_few_seeds_may_lose(seeds: int):
    """At the low end P, 1 is z standard errors away; 1.645 is the normal's 95 % quantile."""
    first, second = np.full((2, seeds), 0.9), np.full((2, seeds), 0.1)
    got = comparison.improvement_estimate(first, second)
    p, pairs = got.low, seeds**2
    two_of_one, one_of_two = p / (2 - p), 2 * p**2 / (1 + p)  # Hanley and McNeil's Q1 and Q2
    others = two_of_one + one_of_two - 2 * p**2
    error = np.sqrt((p * (1 - p) + (seeds - 1) * others) / pairs)
    assert (got.value, got.high) == (1, 1)
    assert 1 - p == pytest.approx(1.64485 * error, rel=1e-4)
    other_way = comparison.improvement_estimate(second, first)
    assert (other_way.value, other_way.low) == (0, 0)
    assert other_way.high == pytest.approx(1 - p)


@pytest.mark.parametrize("chance", [0.5, 0.9])
@pytest.mark.parametrize("seeds", [3, 5, 10])
def test_nine_of_ten_intervals_hold_the_true_probability(chance: float, seeds: int):
    rng = np.random.default_rng(0)
    better = rng.normal(np.sqrt(2) * stats.norm.ppf(chance), 1, (400, 1, seeds))
    other = rng.normal(0, 1, (400, 1, seeds))
    found = map(comparison.improvement_estimate, better, other)
    assert np.mean([got.low <= chance <= got.high for got in found]) > 0.85


def test_iqm_cuts_a_quarter_on_each_side():
    assert comparison.iqm(np.array([100.0, 1, 2, 3, 4, 5, 6, -100])) == 3.5
    scores = np.random.default_rng(5).random(40)
    assert comparison.iqm(scores) == pytest.approx(stats.trim_mean(scores, 0.25))


def test_holm_against_a_known_answer():
    # Sorted 0.005, 0.01, 0.03, 0.04 times 4, 3, 2, 1: 0.02, 0.03, 0.06, 0.04 -> never falling.
    got = comparison.holm(np.array([0.01, 0.04, 0.03, 0.005, np.nan]))
    assert got[:4].tolist() == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert np.isnan(got[4])
    assert comparison.holm(np.array([0.9, 0.8])).tolist() == [1, 1]


def test_a_profile_band_holds_the_profile():
    scores = np.random.default_rng(0).random((2, 6))
    thresholds = np.linspace(0, 1, 11)
    low, high = comparison.profile_band(scores, thresholds)
    share = comparison.profile(scores, thresholds)
    assert (low <= share).all() and (share <= high).all() and (low < high).any()


def test_a_profile_band_has_the_quantiles_of_resampled_seeds():
    """Two of five seeds are above: their share is 0, 0.2 .. 1 of five with binomial chances.

    The quantiles at 0.05 and 0.95 are 0 and 0.8. A further sequence with the same scores adds
    nothing, since seeds are resampled with all their sequences.
    """
    chances = np.asarray(stats.binom.cdf(range(6), 5, 0.4))
    assert chances[0] > 0.05 and chances[3] < 0.95 < chances[4]
    for sequences in (1, 2):
        scores = np.array([[0.1, 0.1, 0.1, 0.9, 0.9]] * sequences)
        low, high = comparison.profile_band(scores, np.array([0.5]))
        assert (low.item(), high.item()) == pytest.approx((0, 0.8))


def test_iqm_takes_nan_for_missing_and_not_for_the_best():
    known = np.array([1.0, 2, 3, 4, 5, 6, 7, 100])
    assert comparison.iqm(np.append(known, [np.nan] * 4)) == comparison.iqm(known) == 4.5
    assert np.isnan(comparison.iqm(np.array([np.nan, np.nan])))


def test_a_score_is_not_above_the_threshold_that_it_equals():
    threshold = np.array([0.48])
    scores = np.nextafter(threshold, 1)  # as a mean of equal successes may be
    assert comparison.profile(scores, threshold) == 0
    seeds = np.tile(scores, (1, 2))
    assert [x.item() for x in comparison.profile_band(seeds, threshold)] == [0, 0]


def test_one_seed_has_no_band():
    """Other columns are seeds that have not ended."""
    nan = np.nan
    for scores in ([[0.2], [0.5]], [[0.2, nan], [0.5, nan]]):
        low, high = comparison.profile_band(np.array(scores), np.array([0.1, 0.3]))
        assert np.isnan([low, high]).all() and len(low) == 2


def test_profile_counts_runs_above_a_threshold():
    scores = np.array([[0.2, 0.5], [0.5, 0.9]])
    assert comparison.profile(scores, np.array([0.0, 0.2, 0.5, 0.9])).tolist() == [1, 0.75, 0.25, 0]


def test_power_matches_simulation():
    generator = np.random.default_rng(6)
    samples = generator.normal(0.1, 0.1, (20_000, 6))
    t = samples.mean(1) / (samples.std(1, ddof=1) / np.sqrt(6))
    seen = (np.abs(t) > stats.t.ppf(0.95, 5)).mean()
    assert comparison.power(0.1, 0.1, 6) == pytest.approx(seen, abs=0.01)
    assert comparison.power(0.0, 0.1, 6) == pytest.approx(0.1)  # both tails see what is not there


def test_seeds_needed_is_the_smallest_that_suffices():
    need = comparison.seeds_needed(0.05, 0.08)
    assert comparison.power(0.05, 0.08, need) >= 0.8 > comparison.power(0.05, 0.08, need - 1)
