"""Metrics against known answers, and identities over many inputs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose

from cwbench.reports.analysis import metrics

# One run, two tasks, three evaluations each. Columns: task 0, task 1 (unseen at first).
BY_HAND = np.array(
    [
        [
            [[0.0, np.nan], [0.5, np.nan], [1.0, np.nan]],
            [[0.8, 0.0], [0.6, 0.2], [0.4, 0.4]],
        ]
    ]
)

successes = arrays(float, (3, 4, 5, 4), elements=st.floats(0, 1))
windows = st.integers(1, 5)


def test_metrics_of_known_curves():
    assert_allclose(metrics.end_values(BY_HAND, 2)[0], [[0.75, np.nan], [0.5, 0.3]])
    assert metrics.average_performance(BY_HAND, 2) == pytest.approx([(0.5 + 0.3) / 2])
    assert metrics.forgetting(BY_HAND, 2) == pytest.approx([(0.75 - 0.5 + 0) / 2])
    assert metrics.backward_transfer(BY_HAND, 2) == pytest.approx([0.5 - 0.75])
    assert_allclose(metrics.area(BY_HAND)[0], [0.5, 0.2])
    assert_allclose(metrics.average_curve(BY_HAND)[0], [0, 0.25, 0.5, 0.4, 0.4, 0.4])
    assert_allclose(metrics.task_curves(BY_HAND)[0, 1], [np.nan] * 3 + [0, 0.2, 0.4])
    assert metrics.failed_to_learn(BY_HAND, 2, 0.5).tolist() == [[0.0, 1.0]]


def test_transfer_of_known_curves():
    # (0.5 - 0.2) / 0.8 = 0.375 and (0.2 - 0.6) / 0.4 = -1
    area, reference = np.array([0.5, 0.2]), np.array([0.2, 0.6])
    assert_allclose(metrics.task_transfer(area, reference), [0.375, -1.0])
    assert metrics.transfer(area, reference) == pytest.approx(-0.3125)
    assert metrics.pooled_transfer(area, reference) == pytest.approx((0.3 - 0.4) / (0.8 + 0.4))


def test_nothing_can_be_gained_on_a_perfect_reference():
    """Transfer is not defined there, rather than minus infinity. Warnings are errors here."""
    area, reference = np.array([0.5, 0.5]), np.array([1.0, 0.2])
    assert_allclose(metrics.task_transfer(area, reference), [np.nan, 0.375])
    assert np.isnan(metrics.transfer(area, reference))
    assert metrics.pooled_transfer(area, reference) == pytest.approx((-0.5 + 0.3) / 0.8)
    assert np.isnan(metrics.pooled_transfer(reference[:1], reference[:1]))


def test_pooling_tames_a_denominator_near_zero():
    # The second task is solved at once by the reference, so a loss of 0.02 there reads as -1.
    area, reference = np.array([0.5, 0.96]), np.array([0.5, 0.98])
    assert metrics.transfer(area, reference) == pytest.approx(-0.5)
    assert metrics.pooled_transfer(area, reference) == pytest.approx(-0.02 / 0.52)


def test_time_to_threshold_ignores_a_lucky_evaluation():
    curve = np.array([0.0, 1.0, 0.7, 0.9, 0.9, 0.9, 0.0])  # means of 3: 0.57, 0.87 from the second
    success = curve.reshape(1, 1, 7, 1)
    assert metrics.evaluations_to_threshold(success, 0.8).tolist() == [[2.0]]
    late = np.where(np.arange(7) == 2, 0.0, curve).reshape(1, 1, 7, 1)  # 0.57, 0.63, 0.6, 0.9
    assert metrics.evaluations_to_threshold(late, 0.8).tolist() == [[4.0]]
    assert metrics.evaluations_to_threshold(success, 0.95).tolist() == [[np.inf]]
    early = np.array([0.7, 1.0, 1.0, 1.0]).reshape(1, 1, 4, 1)  # 0.9 from the first, which is 0.7
    assert metrics.evaluations_to_threshold(early, 0.8).tolist() == [[2.0]]
    missing = np.where(np.arange(7) == 6, np.nan, curve).reshape(1, 1, 7, 1)
    assert np.isnan(metrics.evaluations_to_threshold(missing, 0.8)).all()


def test_a_threshold_is_reached_at_equality_whatever_the_rounding():
    """0.8, 0.6 and 1 average to 0.8, in floating point to less."""
    curve = np.array([0.8, 0.6, 1.0])
    assert curve.mean() < 0.8
    assert metrics.evaluations_to_threshold(curve.reshape(1, 1, 3, 1), 0.8).tolist() == [[1.0]]


def test_time_to_threshold_needs_three_evaluations():
    two = np.ones((1, 1, 2, 1))
    assert np.isnan(metrics.evaluations_to_threshold(two, 0.8)).all()


@pytest.mark.parametrize(("evaluations", "window"), [(50, 10), (25, 5), (8, 2), (2, 1), (1, 1)])
def test_default_window_is_a_fifth(evaluations: int, window: int):
    assert metrics.default_window(evaluations) == window


@given(st.floats(0, 1), windows)
def test_constant_scores_are_never_forgotten(level: float, window: int):
    success = np.full((3, 4, 5, 4), level)
    assert_allclose(metrics.forgetting(success, window), 0, atol=1e-12)
    assert_allclose(metrics.average_performance(success, window), level, atol=1e-12)


@given(successes, windows)
def test_a_common_shift_moves_performance_only(success, window: int):
    moved = success + 0.25
    assert_allclose(
        metrics.forgetting(moved, window), metrics.forgetting(success, window), atol=1e-12
    )
    assert_allclose(
        metrics.average_performance(moved, window),
        metrics.average_performance(success, window) + 0.25,
    )


@given(successes, windows)
def test_backward_transfer_is_forgetting_without_the_last_task(success, window: int):
    tasks = success.shape[1]
    assert_allclose(
        metrics.backward_transfer(success, window) * (tasks - 1),
        -metrics.forgetting(success, window) * tasks,
        atol=1e-12,
    )


@given(successes)
def test_a_method_equal_to_its_reference_has_no_transfer(success):
    area = metrics.area(success * 0.9).mean(0)
    assert metrics.transfer(area, area) == 0
    assert metrics.pooled_transfer(area, area) == 0


@given(successes)
def test_the_last_evaluation_of_the_average_curve_is_performance_at_window_one(success):
    assert_allclose(
        metrics.average_curve(success)[:, -1], metrics.average_performance(success, 1), atol=1e-12
    )


@settings(max_examples=30)
@given(arrays(float, (2, 9), elements=st.floats(0, 1)), st.integers(1, 9))
def test_trailing_mean_is_the_loop(curve, length: int):
    loop = [[row[max(0, e - length + 1) : e + 1].mean() for e in range(9)] for row in curve]
    assert_allclose(metrics.trailing_mean(curve.copy(), length), loop, atol=1e-12)


def test_a_missing_evaluation_stays_missing():
    success = np.full((1, 2, 3, 2), 0.5)
    success[0, 1, 2, 0] = np.nan
    assert np.isnan(metrics.average_performance(success, 2)).all()
    assert np.isnan(metrics.forgetting(success, 2)).all()
    assert_allclose(metrics.area(success), 0.5)  # the missing one is outside both own windows


def test_a_huge_value_does_not_wipe_out_those_after_it():
    curve = np.array([1e20, 1.0, 2.0, 3.0, 4.0])
    assert metrics.smoothed(curve, 5, 3)[3:].tolist() == [2.0, 3.0]


def test_a_smoothed_curve_leaves_gaps_out_and_keeps_them():
    """Two tasks of four evaluations: the mean of three starts again at the second."""
    nan = np.nan
    curve = np.array([nan, 0.2, nan, 0.6, 1.0, nan, 0.4, 0.7])
    want = [nan, 0.2, nan, (0.2 + 0.6) / 2, 1.0, nan, (1.0 + 0.4) / 2, (0.4 + 0.7) / 2]
    assert_allclose(metrics.smoothed(curve, 4, 3), want)


def test_half_of_the_episodes_is_not_a_failure_whatever_the_rounding():
    """Ten rates whose exact mean is 0.5 add up to less in floating point."""
    rates = [0.1, 0.1, 0.8, 0.6, 0.7, 0.9, 0.0, 0.7, 0.3, 0.8]
    success = np.array(rates).reshape(1, 1, 10, 1)
    assert metrics.end_values(success, 10) < 0.5
    assert metrics.failed_to_learn(success, 10, 0.5) == 0


@pytest.mark.parametrize("seeds", [5, 12, 14, 23])
def test_a_reference_of_ones_leaves_no_room(seeds: int):
    """The mean of 14 areas of 1, a weight of 1 / 14 each, is not exactly 1."""
    reference = np.full((1, seeds), 1 / seeds) @ np.ones((seeds, 2))
    assert np.isnan(metrics.task_transfer(np.full((1, 2), 0.5), reference)).all()
    assert np.isnan(metrics.pooled_transfer(np.full((1, 2), 0.5), reference)).all()
