"""The stability gap against known answers."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from cwbench.reports.analysis import metrics, stability

NAN = np.nan
# One run, two tasks, six evaluations each. Task 0 falls from 0.9 after the switch and comes back.
FALL = np.array([0.0, 0.3, 0.6, 0.9, 0.9, 0.9])
SUCCESS = np.full((1, 2, 6, 2), NAN)
SUCCESS[0, 0, :, 0] = 0.9
SUCCESS[0, 1, :, 0] = FALL
SUCCESS[0, 1, :, 1] = 0.5


def test_depth_minimum_length_and_recovery():
    # Trailing means of three: 0, 0.15, 0.3, 0.6, 0.8, 0.9. Before the switch: 0.9.
    assert_allclose(stability.smooth(SUCCESS)[0, 1, :, 0], [0, 0.15, 0.3, 0.6, 0.8, 0.9])
    # A minimum of means of fewer would be luck: only 0.3, 0.6, 0.8 and 0.9 count.
    assert stability.minimum_after_learning(SUCCESS, 2) == pytest.approx([0.3])
    assert stability.drop_depth(SUCCESS, 2) == pytest.approx([0.6])
    assert stability.drop_length(SUCCESS, 2) == pytest.approx([2 / 4])  # below 0.8
    assert stability.recoveries(SUCCESS, 2).tolist() == [5]
    slow = SUCCESS.copy()
    slow[0, 0, :4, 0] = 0.1  # before the task was learned
    assert stability.minimum_after_learning(slow, 2) == pytest.approx([0.3])


@pytest.mark.parametrize(("level", "length"), [(0.81, 0), (0.8, 0), (0.79, 1)])
def test_a_drop_is_more_than_a_tenth_below(level: float, length: int):
    success = SUCCESS.copy()  # 0.9 before the switch
    success[0, 1, :, 0] = level
    assert stability.drop_length(success, 2) == pytest.approx([length])


def test_windows_of_two_evaluations_are_averaged_whole():
    short = SUCCESS[:, :, :2]
    assert stability.minimum_after_learning(short, 1) == pytest.approx([0.15])
    assert stability.recoveries(short, 1).tolist() == [np.inf]


def test_the_curve_after_a_switch_starts_at_the_fall():
    want = np.array([0, 0.15, 0.3, 0.6, 0.8, 0.9]) - 0.9
    assert_allclose(stability.after_switch(SUCCESS, 2), [want], atol=1e-12)
    alone = SUCCESS[:, :1, :, :1]
    assert np.isnan(stability.after_switch(alone, 2)).all()  # no old task


def test_a_task_that_does_not_fall_has_no_drop():
    still = SUCCESS.copy()
    still[0, 1, :, 0] = 0.95
    assert stability.drop_depth(still, 2) == pytest.approx([0])
    assert len(stability.recoveries(still, 2)) == 0


def test_a_task_that_stays_down_never_recovers():
    lost = SUCCESS.copy()
    lost[0, 1, :, 0] = 0.1
    assert stability.recoveries(lost, 2).tolist() == [np.inf]
    assert stability.drop_length(lost, 2) == pytest.approx([1])


def test_a_single_task_has_no_old_ones():
    alone = SUCCESS[:, :1, :, :1]
    assert np.isnan(stability.minimum_after_learning(alone, 2)).all()
    assert np.isnan(stability.drop_depth(alone, 2)).all()


def test_unfinished_runs_have_no_numbers():
    unknown = np.full_like(SUCCESS, NAN)
    for metric in (stability.drop_depth, stability.drop_length, stability.minimum_after_learning):
        assert np.isnan(metric(unknown, 2)).all()
    assert len(stability.recoveries(unknown, 2)) == 0


@pytest.mark.parametrize(("window", "evaluation"), [(1, 5), (0, 5)])
def test_a_missing_evaluation_is_neither_a_recovery_nor_the_end_of_a_drop(
    window: int, evaluation: int
):
    """A second run lacks an evaluation after the switch, or of the value before it."""
    both = np.concatenate([SUCCESS, SUCCESS])
    both[1, 1, :, 0] = 0.1
    both[1, window, evaluation, 0] = NAN
    assert stability.recoveries(both, 2).tolist() == [5]  # of the first run alone
    assert_allclose(stability.drop_length(both, 2), [2 / 4, NAN])


def test_anytime_performance_and_the_worst_task():
    # Average of both tasks: 0.45 in the first window (task 1 counts 0), then (fall + 0.5) / 2.
    want = np.mean([0.45, np.mean((FALL + 0.5) / 2)])
    assert metrics.anytime_performance(SUCCESS, 2) == pytest.approx([want])
    assert metrics.worst_task(SUCCESS, 2) == pytest.approx([0.5])
