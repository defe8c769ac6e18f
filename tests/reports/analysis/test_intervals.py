"""Intervals against full enumeration, textbooks and simulation."""

from collections.abc import Callable
from dataclasses import astuple
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from cwbench.reports.analysis import intervals, metrics


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def test_percentile_bootstrap_matches_all_27_resamples_of_three_seeds():
    scores = np.array([0.2, 0.5, 0.9])
    exact = np.array([scores[list(pick)].mean() for pick in product(range(3), repeat=3)])
    draws = intervals.resampled(3, 200_000, rng()) @ scores
    for value in np.unique(exact.round(9)):
        share = np.isclose(exact, value).mean()
        # 200,000 draws: a share has a standard error of at most 0.0011.
        assert np.isclose(draws, value).mean() == pytest.approx(share, abs=0.005)
    got = intervals.mean_estimate(scores, rng=rng())
    assert got.ends("percentile") == pytest.approx(intervals.percentile_interval(exact))


def test_joint_bootstrap_of_transfer_matches_all_resamples_of_both_seed_groups():
    areas, reference = np.array([[0.5, 0.7, 0.6]]), np.array([[0.2, 0.4, 0.5]])  # [N, R]

    def statistic(weights, reference_weights):
        return metrics.transfer(
            intervals.seed_means(areas, weights), intervals.seed_means(reference, reference_weights)
        )

    picks = [list(pick) for pick in product(range(3), repeat=3)]
    exact = np.array(
        [
            (areas[0, a].mean() - reference[0, b].mean()) / (1 - reference[0, b].mean())
            for a in picks
            for b in picks
        ]
    )
    got = intervals.estimate(statistic, [3, 3], rng=rng(), resamples=100_000)
    low, high = intervals.percentile_interval(exact)
    assert got.value == pytest.approx((0.6 - 1.1 / 3) / (1 - 1.1 / 3))
    assert got.ends("percentile") == pytest.approx((low, high), abs=0.01)  # grid of 729 values


def test_t_interval_of_one_mean_is_the_textbook_one():
    scores = np.array([0.61, 0.72, 0.55, 0.80, 0.67])
    want = stats.t.interval(0.9, 4, scores.mean(), stats.sem(scores))
    got = intervals.mean_estimate(scores, rng=rng())
    assert (got.t_low, got.t_high) == pytest.approx(want)
    assert got.freedom == pytest.approx(4)


def test_t_interval_of_a_difference_is_welch():
    a, b = np.array([0.1, 0.4, 0.35, 0.2]), np.array([0.7, 0.5, 0.9])
    got = intervals.estimate(lambda w, v: w @ a - v @ b, [4, 3], rng=rng())
    want = stats.ttest_ind(a, b, equal_var=False).confidence_interval(0.9)
    assert (got.t_low, got.t_high) == pytest.approx((want.low, want.high))


def test_sequences_that_share_seeds_are_not_independent():
    seeds = np.array([0.2, 0.4, 0.6, 0.8])
    copies = intervals.mean_estimate(np.stack([seeds] * 8), rng=rng())
    alone = intervals.mean_estimate(seeds, rng=rng())
    assert_allclose(astuple(copies), astuple(alone))  # eight copies teach nothing
    opposite = intervals.mean_estimate(np.stack([seeds, 1 - seeds]), rng=rng())
    assert opposite.high - opposite.low == pytest.approx(0, abs=1e-12)


def test_a_missing_seed_is_left_out_not_counted_as_zero():
    scores = np.array([[0.5, 0.5, np.nan], [0.9, 0.9, 0.9]])
    got = intervals.mean_estimate(scores, rng=rng())
    assert got.value == pytest.approx(0.7)
    assert (got.low, got.high) == pytest.approx((0.7, 0.7))


def test_a_seed_that_most_sequences_lack_adds_no_certainty():
    """Two seeds on seven sequences, three on another: about as wide as with two seeds on all."""
    scores = np.full((8, 3), np.nan)
    scores[:, 0], scores[:, 1], scores[0, 2] = 0.55, 0.51, 0.53
    got = intervals.mean_estimate(scores, rng=rng())
    two = intervals.mean_estimate(scores[:, :2], rng=rng())
    assert got.freedom == two.freedom == 1
    assert got.t_high - got.t_low > 0.95 * (two.t_high - two.t_low)
    assert got.high - got.low > 0.95 * (two.high - two.low)
    scores[1, 1] = np.nan  # one sequence with one seed
    assert np.isnan(intervals.mean_estimate(scores, rng=rng()).low)


def test_quantiles_fall_in_the_middle_between_two_draws():
    """As in the published code, and unlike numpy's default, which would give 0.05 and 0.95."""
    assert intervals.percentile_interval(np.array([0.0, 1.0])) == (0.5, 0.5)


def test_one_seed_has_no_interval():
    got = intervals.mean_estimate(np.array([0.4]), rng=rng())
    assert got.value == 0.4
    assert np.isnan([got.low, got.high, got.t_low, got.t_high]).all()


def test_bounds_cut_all_but_the_published_interval():
    scores = np.array([0.9, 1.0, 1.0, 1.0, 0.95])
    free = intervals.mean_estimate(scores, rng=rng())
    cut = intervals.mean_estimate(scores, rng=rng(), bounds=(0, 1))
    assert free.t_high > 1 and cut.t_high == 1 and cut.t_low == free.t_low
    assert free.high > 1 and cut.high == 1 and cut.low == free.low
    assert cut.ends("percentile") == free.ends("percentile")


def test_the_generator_decides_the_draws():
    scores = np.array([0.1, 0.5, 0.45, 0.9, 0.3])
    first, second = (intervals.mean_estimate(scores, rng=rng(), resamples=50) for _ in range(2))
    assert first == second
    other = intervals.mean_estimate(scores, rng=np.random.default_rng(1), resamples=50)
    assert (first.low, first.high) != (other.low, other.high)


def test_the_bootstrap_interval_is_the_percentile_one_spread_by_a_known_factor():
    scores = np.array([0.2, 0.5, 0.9])
    exact = np.array([scores[list(pick)].mean() for pick in product(range(3), repeat=3)])
    # t(2) / z times the standard error s / sqrt(3) over the draws' deviation s sqrt(2/3) / sqrt(3)
    factor = stats.t.ppf(0.95, 2) / stats.norm.ppf(0.95) * np.sqrt(3 / 2)
    want = intervals.percentile_interval(scores.mean() + factor * (exact - scores.mean()))
    got = intervals.mean_estimate(scores, rng=rng(), resamples=200_000)
    assert got.ends("bootstrap") == pytest.approx(want, abs=0.01)
    factor = stats.t.ppf(0.9, 2) / stats.norm.ppf(0.9) * np.sqrt(3 / 2)
    want = intervals.percentile_interval(scores.mean() + factor * (exact - scores.mean()), 0.8)
    got = intervals.mean_estimate(scores, rng=rng(), resamples=200_000, level=0.8)
    assert got.ends("bootstrap") == pytest.approx(want, abs=0.01)


def test_a_wider_level_gives_a_wider_interval():
    scores = np.array([0.61, 0.72, 0.55, 0.80, 0.67])
    wide = intervals.mean_estimate(scores, rng=rng(), level=0.95)
    want = stats.t.interval(0.95, 4, scores.mean(), stats.sem(scores))
    assert wide.ends("t") == pytest.approx(want)
    usual = intervals.mean_estimate(scores, rng=rng())
    for kind in intervals.INTERVALS:
        assert wide.ends(kind)[0] < usual.ends(kind)[0] < usual.ends(kind)[1] < wide.ends(kind)[1]


Draw = Callable[[np.random.Generator], np.ndarray]
# distribution: (five seeds, true mean, smallest coverage asked of the t interval)
SIMULATED: dict[str, tuple[Draw, float, float]] = {
    "normal": (lambda g: g.normal(0.6, 0.1, 5), 0.6, 0.88),
    "uniform": (lambda g: g.uniform(0, 1, 5), 0.5, 0.88),
    "skewed": (lambda g: g.beta(8, 1, 5), 8 / 9, 0.83),
}


@pytest.mark.parametrize("name", SIMULATED)
def test_coverage_at_five_seeds(name: str):
    """Bootstrap and t interval keep their 90 % or come near; the plain percentile does not."""
    draw, truth, smallest = SIMULATED[name]
    generator, repeats = np.random.default_rng(3), 2000
    inside = np.zeros(3)
    for _ in range(repeats):
        got = intervals.mean_estimate(draw(generator), rng=generator, resamples=400)
        ends = [got.ends(kind) for kind in intervals.INTERVALS]
        inside += [low <= truth <= high for low, high in ends]
    bootstrap, student, percentile = inside / repeats  # standard error below 0.01
    assert student > smallest
    assert bootstrap > smallest - 0.02
    assert percentile < 0.84


def test_coverage_of_transfer_at_five_seeds():
    """A ratio with uncertain numerator and denominator: the jackknife error holds there too."""
    generator, repeats, inside = np.random.default_rng(4), 1000, 0
    truth = (0.6 - 0.4) / (1 - 0.4)
    for _ in range(repeats):
        area, reference = generator.normal(0.6, 0.1, (1, 5)), generator.normal(0.4, 0.05, (1, 5))

        def statistic(w, v, area=area, reference=reference):
            return metrics.transfer(
                intervals.seed_means(area, w), intervals.seed_means(reference, v)
            )

        got = intervals.estimate(statistic, [5, 5], rng=generator, resamples=2)
        inside += got.t_low <= truth <= got.t_high
    assert_allclose(inside / repeats, 0.9, atol=0.03)
