"""Kendall's rank correlation with the p of all orders.

With ties scipy's p is a normal approximation, which is too small for a handful of values: of
eight methods, two of them tied, 0.71 instead of 0.81.
"""

from functools import cache
from itertools import chain, combinations, permutations
from math import factorial

import numpy as np
import pandas as pd
from scipy import stats

LARGEST = 10  # values, with 3.6 million orders


@cache
def _orders(count: int) -> np.ndarray:
    """[count, orders]: every order of so many values."""
    flat = chain.from_iterable(permutations(range(count)))
    return np.fromiter(flat, np.int8, count * factorial(count)).reshape(-1, count).T.copy()


def kendall(one: pd.Series, other: pd.Series) -> tuple[float, float]:
    """Tau of two columns of the same rows, and its two-sided p."""
    assert len(one) <= LARGEST and list(one.index) == list(other.index)
    # Equal means may differ in the last bit, and would not be ties.
    first, second = (stats.rankdata(values.round(9)) for values in (one, other))
    orders = (2 * first).astype(np.int8)[_orders(len(first))]  # ranks of ties are halves
    scores = np.zeros(orders.shape[1], np.int8)
    for left, right in combinations(range(len(first)), 2):
        sign = np.sign(second[left] - second[right]).astype(np.int8)
        scores += sign * np.sign(orders[left] - orders[right])
    as_extreme = np.abs(scores) >= abs(scores[0])  # the first order is the one observed
    return float(stats.kendalltau(first, second).statistic), float(as_extreme.mean())
