"""Means of logged statistics."""

import math

import pytest
import torch

from cwbench.learner.running_means import RunningMeans
from cwbench.spec.statistics import STATISTICS


def test_means_are_those_since_the_last_call() -> None:
    means = RunningMeans(2, torch.device("cpu"))
    for update in (1.0, 3.0):
        means.add([torch.tensor([update, 10 * index]) for index in range(len(STATISTICS))])
        means.count += 1
    assert means.take() == {name: [2.0, 10.0 * i] for i, name in enumerate(STATISTICS)}
    assert all(map(math.isnan, means.take()[STATISTICS[0]]))


def test_a_mean_of_many_updates_is_exact() -> None:
    """What has been added so far is much larger than what comes next."""
    means, values = RunningMeans(1, torch.device("cpu")), [torch.tensor([0.1])] * len(STATISTICS)
    means.sums += 1e6
    for _ in range(1000):
        means.add(values)
    means.sums -= 1e6
    means.count = 1000
    assert means.take()["q"] == [pytest.approx(0.1, rel=1e-6)]
