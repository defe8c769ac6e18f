"""Simulated coverage of the 90 % intervals: the tables in reports.md.

python docs/coverage.py
"""

from collections.abc import Callable

import numpy as np
from scipy import special

from cwbench.reports.analysis.aggregates import AGGREGATES, aggregate
from cwbench.reports.analysis.comparison import improvement_estimate
from cwbench.reports.analysis.intervals import INTERVALS, Estimate, mean_estimate

REPEATS, RESAMPLES = 4000, 1000
Draw = Callable[[np.random.Generator, int], np.ndarray]
DISTRIBUTIONS: dict[str, tuple[Draw, float]] = {
    "normal(0.6, 0.1)": (lambda g, n: g.normal(0.6, 0.1, n), 0.6),
    "uniform(0, 1)": (lambda g, n: g.uniform(0, 1, n), 0.5),
    "beta(8, 1), near the ceiling": (lambda g, n: g.beta(8, 1, n), 8 / 9),
    "0.9, or 0.2 with chance 0.2": (lambda g, n: np.where(g.random(n) < 0.2, 0.2, 0.9), 0.76),
    "mean of three such tasks": (
        lambda g, n: np.where(g.random((3, n)) < 0.2, 0.2, 0.9).mean(0),
        0.76,
    ),
}


def coverage(draw: Draw, truth: float, seeds: int) -> np.ndarray:
    """Share of samples whose interval holds the true mean, for each kind of interval."""
    rng = np.random.default_rng([seeds, 0])
    inside = np.zeros(len(INTERVALS))
    for _ in range(REPEATS):
        got = mean_estimate(draw(rng, seeds), rng=rng, resamples=RESAMPLES)
        slack = 1e-9  # a constant sample has an interval without width
        ends = [got.ends(kind) for kind in INTERVALS]
        inside += [low - slack <= truth <= high + slack for low, high in ends]
    return inside / REPEATS


def held(estimate: Callable[[np.random.Generator], Estimate], truth: float) -> float:
    """Share of 1000 default intervals that hold the truth."""
    rng = np.random.default_rng(0)
    found = [estimate(rng).ends() for _ in range(1000)]
    return float(np.mean([low <= truth <= high for low, high in found]))


def of_normal_scores(name: str, seeds: int) -> float:
    return held(lambda g: aggregate(g.normal(0.5, 0.1, (1, seeds)), name), 0.5)


def of_two_methods(chance: float, seeds: int) -> float:
    """Of P(better), for normal scores that differ so much that it is `chance`."""
    ahead = float(np.sqrt(2) * special.ndtri(chance))

    def estimate(rng: np.random.Generator) -> Estimate:
        return improvement_estimate(*rng.normal([[[ahead]], [[0.0]]], 1, (2, 1, seeds)))

    return held(estimate, chance)


if __name__ == "__main__":
    print(f"| scores of a seed | seeds | {' | '.join(INTERVALS)} |\n| - | - | - | - | - |")
    for name, (draw, truth) in DISTRIBUTIONS.items():
        for seeds in (3, 5, 10):
            shares = " | ".join(f"{share:.2f}" for share in coverage(draw, truth, seeds))
            print(f"| {name} | {seeds} | {shares} |")
    counts = (3, 5, 10, 20)
    print(f"\n| of normal scores | {' | '.join(map(str, counts))} |\n{'| - ' * 5}|")
    for name in ("median", "iqm"):
        shares = " | ".join(f"{of_normal_scores(name, n):.2f}" for n in counts)
        print(f"| {AGGREGATES[name].lower()} | {shares} |")
    for chance in (0.5, 0.75, 0.9, 0.97):
        shares = " | ".join(f"{of_two_methods(chance, n):.2f}" for n in counts)
        print(f"| P(better) = {chance:g} | {shares} |")
