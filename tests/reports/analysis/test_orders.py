"""The order as a factor: known shares, exact intervals in simulation, gaps."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from numpy.typing import NDArray
from scipy import stats

from cwbench.reports.analysis.orders import complete, family_of, order_effect

Array = NDArray[np.float64]


def simulated(rng: np.random.Generator, share: float, *, orders: int, seeds: int) -> Array:
    """Scores of variance 1 about 0.5, of which a share is the order's."""
    effect = rng.normal(size=(orders, 1)) * np.sqrt(share)
    residual = rng.normal(size=(orders, seeds)) * np.sqrt(1 - share)
    return np.asarray(0.5 + effect + residual)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.8])
def test_the_share_is_found_in_many_orders(share: float) -> None:
    """The standard error of the estimate is below 0.02 with 2,000 orders of 5 seeds."""
    rng = np.random.default_rng(0)
    found = order_effect(simulated(rng, share, orders=2000, seeds=5))
    assert found.share == pytest.approx(share, abs=0.05)
    assert found.share_interval[0] <= share <= found.share_interval[1] or share == 0


def test_intervals_cover_as_often_as_they_say() -> None:
    """Exact in this model: 90 % of 1,000 small studies, give or take 3 standard errors."""
    rng = np.random.default_rng(1)
    studies = [order_effect(simulated(rng, 0.4, orders=6, seeds=4)) for _ in range(1000)]
    shares = np.mean([s.share_interval[0] <= 0.4 <= s.share_interval[1] for s in studies])
    means = np.mean([s.mean_interval[0] <= 0.5 <= s.mean_interval[1] for s in studies])
    assert_allclose([shares, means], 0.9, atol=3 * np.sqrt(0.9 * 0.1 / 1000))


def test_a_small_table_by_the_textbook() -> None:
    """Means 1 and 3, variances 2 and 2: mean squares 4 and 2, so (4 - 2) / (4 + 2)."""
    found = order_effect(np.array([[0.0, 2.0], [2.0, 4.0]]))
    assert found.share == pytest.approx(1 / 3)
    assert found.mean == 2 and (found.orders, found.seeds) == (2, 2)
    reach = 6.3137515 * np.sqrt(4 / 4)  # t with one degree of freedom at 90 %
    assert_allclose(found.mean_interval, (2 - reach, 2 + reach), rtol=1e-6)
    # Searle's interval, from F of 1 and 2 degrees of freedom at 5 and 95 %.
    low, high = 2 / np.asarray(stats.f.ppf([0.95, 0.05], 1, 2))
    assert low < 1  # so the share may be zero
    assert_allclose(found.share_interval, (0, (high - 1) / (high + 1)), rtol=1e-9)


def test_equal_seeds_and_single_ones() -> None:
    assert order_effect(np.array([[1.0, 1.0], [2.0, 2.0]])).share == 1
    assert np.isnan(order_effect(np.ones((2, 2))).share)
    assert np.isnan(order_effect(np.full((6, 4), 0.7)).share)  # whose mean is 0.6999999999999998
    alone = order_effect(np.array([[1.0], [2.0]]))
    assert np.isnan(alone.share) and np.isnan(alone.mean_interval).all() and alone.mean == 1.5


def test_only_seeds_that_have_ended_in_every_order_are_used() -> None:
    nan = np.nan
    values = np.array([[1.0, 2.0, nan], [3.0, 4.0, 5.0]])
    assert_allclose(complete(values), [[1, 2], [3, 4]])
    assert not complete(np.vstack([values, [nan, nan, nan]])).size


def test_families() -> None:
    assert family_of("orders-cw10-12") == "orders-cw10"
    assert family_of("cw10") is None and family_of("pair-1-2") is None
