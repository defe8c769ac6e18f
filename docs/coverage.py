"""Simulated coverage of both 90 % intervals, the figures quoted in reports.md.

python docs/coverage.py
"""

from collections.abc import Callable

import numpy as np

from cwbench.reports.analysis.intervals import mean_estimate

REPEATS, RESAMPLES = 10_000, 1000
Draw = Callable[[np.random.Generator, int], np.ndarray]
DISTRIBUTIONS: dict[str, tuple[Draw, float]] = {
    "normal(0.6, 0.1)": (lambda g, n: g.normal(0.6, 0.1, n), 0.6),
    "uniform(0, 1)": (lambda g, n: g.uniform(0, 1, n), 0.5),
    "beta(8, 1), near the ceiling": (lambda g, n: g.beta(8, 1, n), 8 / 9),
    "0.9, or 0.2 with chance 0.2": (lambda g, n: np.where(g.random(n) < 0.2, 0.2, 0.9), 0.76),
}


def coverage(draw: Draw, truth: float, seeds: int) -> np.ndarray:
    """Shares of samples whose percentile interval and whose t interval hold the true mean."""
    rng = np.random.default_rng([seeds, 0])
    inside = np.zeros(2)
    for _ in range(REPEATS):
        got = mean_estimate(draw(rng, seeds), rng=rng, resamples=RESAMPLES)
        slack = 1e-9  # a constant sample has an interval without width
        inside += [
            got.low - slack <= truth <= got.high + slack,
            got.t_low - slack <= truth <= got.t_high + slack,
        ]
    return inside / REPEATS


if __name__ == "__main__":
    print("| scores | seeds | percentile | t |\n| - | - | - | - |")
    for name, (draw, truth) in DISTRIBUTIONS.items():
        for seeds in (3, 5, 10):
            percentile, student = coverage(draw, truth, seeds)
            print(f"| {name} | {seeds} | {percentile:.2f} | {student:.2f} |")
