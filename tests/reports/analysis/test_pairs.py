"""Matrices of pairs, and the counts that the paper quotes."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from cwbench.reports.analysis import metrics
from cwbench.reports.analysis.pairs import PairMatrices, matrices
from cwbench.reports.analysis.scores import Scores


def test_pair_matrices_hold_the_end_values(pairs: Scores):
    groups = pairs.study.groups
    found = matrices(pairs, groups)
    [group] = [g for g in groups if g.sequence == "pair-1-0"]
    end = metrics.end_values(group.success, pairs.window)  # [R, 2, 2]
    assert found.values["first"][1, 0] == pytest.approx(end[:, 1, 0].mean())
    assert found.values["second"][1, 0] == pytest.approx(end[:, 1, 1].mean())
    assert found.values["forgetting"][1, 0] == pytest.approx((end[:, 0, 0] - end[:, 1, 0]).mean())
    assert found.pairs == 3
    mean = np.nanmean(found.values["second"])
    assert found.averages["second"].value == pytest.approx(mean)


def test_forgetting_may_be_below_zero(pairs: Scores):
    """The first task at 0.5 ends at 0.3, 0.5 and 0.8; the interval is not cut at 0."""
    [group] = [g for g in pairs.study.groups if g.sequence == "pair-0-1"]
    success = np.full_like(group.success, 0.5)
    success[:, 1, :, 0] = np.array([[0.3], [0.5], [0.8]])
    found = matrices(pairs, [replace(group, success=success)]).averages["forgetting"]
    want = stats.t.interval(0.9, 2, -0.1 / 3, stats.sem([0.2, 0.0, -0.3]))
    assert found.value == pytest.approx(-0.1 / 3)
    assert found.estimate.ends("t") == pytest.approx(want)


def test_the_counts_the_paper_quotes(pairs: Scores):
    found = matrices(pairs, pairs.study.groups)
    found.values["second"][:] = np.nan
    found.values["second"].flat[:5] = [0.0, 0.0, 0.3, 0.5, 0.9]
    found.values["forgetting"][:] = np.nan
    found.values["forgetting"][0, :3] = [0.1, 0.11, -0.2]
    assert list(found.counts().values()) == [2, 1, 1]
    assert found.pairs == 5


def test_a_forgetting_of_a_tenth_is_not_above_it():
    lost = {"first": np.array([[0.3]]), "second": np.array([[0.5]])}
    found = PairMatrices("", "", lost | {"forgetting": np.array([[0.4 - 0.3]])}, {}, {})
    assert found.values["forgetting"][0, 0] > 0.1
    assert set(found.counts().values()) == {0}
