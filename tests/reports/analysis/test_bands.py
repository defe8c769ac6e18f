"""Bands around curves against textbook answers."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from cwbench.reports.analysis import metrics
from cwbench.reports.analysis.bands import average_runs, seed_curve, smoothing
from cwbench.reports.analysis.study import Study

RUNS = np.array([[0.2, 0.4], [0.4, 0.8], [0.3, 0.6]])  # one task, two evaluations


def test_the_default_band_is_the_t_interval_at_each_evaluation():
    curve = seed_curve(RUNS, 2, "interval", smooth=1)
    for place in range(2):
        column = RUNS[:, place]
        want = stats.t.interval(0.9, 2, column.mean(), stats.sem(column))
        assert (curve.low[place], curve.high[place]) == pytest.approx(np.clip(want, 0, 1))


def test_other_bands():
    assert_allclose(seed_curve(RUNS, 2, "sd", smooth=1).high, RUNS.mean(0) + RUNS.std(0, ddof=1))
    drawn = seed_curve(RUNS, 2, "runs", smooth=1)
    assert_allclose(drawn.runs, RUNS)
    assert np.isnan(drawn.low).all()
    resampled = seed_curve(RUNS, 2, "percentile", smooth=1)
    assert ((resampled.low > RUNS.min(0)) & (resampled.high < RUNS.max(0))).all()
    # Of 27 resamples of 0.2, 0.3 and 0.4 one has the mean 0.2 and three 0.2333, a tenth or more.
    resampled = seed_curve(RUNS[:, :1], 1, "percentile", 0.8, smooth=1)
    assert_allclose([resampled.low, resampled.high], [[0.7 / 3], [1.1 / 3]])


def test_runs_that_failed_or_diverged_are_in_no_curve(study: Study):
    group = study.groups[0]
    states = ("failed", "diverged", "done", "running", "done")
    runs = [replace(run, state=state) for run, state in zip(group.runs, states, strict=True)]
    curves = average_runs(replace(group, runs=tuple(runs)))
    assert np.isnan(curves).all(1).tolist() == [True, True, False, False, False]
    assert_allclose(curves[2:], average_runs(group)[2:])


def test_one_seed_has_a_line_and_no_band():
    curve = seed_curve(RUNS[:1], 2, "interval", smooth=1)
    assert_allclose(curve.mean, RUNS[0])
    assert np.isnan(curve.low).all()


def test_smoothing_starts_again_at_each_task():
    """A task that begins at 0 is drawn at 0, whatever the one before it ended with."""
    curve = np.array([0.0, 0.6, 0.9, 0.0, 0.3, 0.9])  # two tasks of three evaluations
    assert_allclose(metrics.smoothed(curve, 3, 2), [0, 0.3, 0.75, 0, 0.15, 0.6])
    gap = np.array([0.4, np.nan, 0.8])
    assert_allclose(metrics.smoothed(gap, 3, 3), [0.4, np.nan, 0.6])


def test_a_bootstrap_band_begins_where_two_runs_have_values():
    gaps = RUNS.copy()
    gaps[:, 0], gaps[:2, 1] = np.nan, np.nan
    runs = np.concatenate([gaps, RUNS], axis=1)
    curve = seed_curve(runs, 2, "percentile", smooth=1)
    assert_allclose(np.isnan(curve.low), [True, True, False, False])
    assert_allclose(curve.high[2:], seed_curve(RUNS, 2, "percentile", smooth=1).high)
    assert np.isnan(seed_curve(RUNS[:1], 2, "percentile").low).all()


def test_curves_of_few_evaluations_are_not_smoothed():
    assert [smoothing(count) for count in (2, 6, 10, 14, 25, 100)] == [1, 1, 2, 2, 3, 3]
