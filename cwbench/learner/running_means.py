"""Means of the logged statistics, per run."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from cwbench.spec.statistics import STATISTICS


class RunningMeans:
    """Sums since the last `take`. `count` is kept by the trainer: captured updates only add."""

    def __init__(self, runs: int, device: torch.device) -> None:
        # In single precision a mean of 200,000 updates is off by 0.2 %.
        self.sums = torch.zeros(len(STATISTICS), runs, dtype=torch.float64, device=device)
        self.count = 0

    @torch.no_grad()
    def add(self, values: Sequence[Tensor]) -> None:
        """One update's values, in the order of `STATISTICS`: [R] each."""
        self.sums += torch.stack(list(values))

    def take(self) -> dict[str, list[float]]:
        """Means per run since the last call; NaN when there was no update."""
        means = (self.sums / (self.count or math.nan)).tolist()
        self.sums.zero_()
        self.count = 0
        return dict(zip(STATISTICS, means, strict=True))
