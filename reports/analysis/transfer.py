"""Transfer: what a task gains from the tasks before it, against runs that had none.

Method and reference seeds are resampled independently. Where one segment serves both (fine-tuning's
first task is the single-task run), its seeds are paired: a seed's weight is the same on both sides,
and the transfer of that position is exactly 0.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cwbench.reports.analysis import metrics
from cwbench.reports.analysis.intervals import Statistic, seed_means
from cwbench.reports.analysis.reference import INDEPENDENT, Reference
from cwbench.reports.analysis.study import Group

Array = NDArray[np.float64]
Position = tuple[Group, int]
Values = dict[int, float]  # seed -> value


@dataclass(frozen=True)
class Transfer:
    """A transfer metric: what is compared, and how positions are combined."""

    combine: Callable[[Array, Array], Array]  # seed means of method and reference [B, N] -> [B]
    end_values: bool = False  # compare end values of a task's own window instead of areas
    first: bool = True  # whether the first position counts


TRANSFER = {
    "forward_transfer": Transfer(metrics.transfer),
    "pooled_transfer": Transfer(metrics.pooled_transfer),
    "later_transfer": Transfer(metrics.transfer, first=False),
    "area_gain": Transfer(lambda ours, base: (ours - base).mean(-1)),
    "negative_transfer": Transfer(lambda ours, base: (base - ours).mean(-1), end_values=True),
}


def values_of(position: Position, last: int | None) -> Values:
    """Area, or mean of the last evaluations, of a position's own window; seeds that have ended."""
    group, index = position
    curve = group.own_windows[:, index, 0 if last is None else -last :]
    return {
        seed: float(value)
        for seed, value in zip(group.seeds, curve.mean(1), strict=True)
        if not np.isnan(value)
    }


def shared_seeds(position: Position, reference: Reference) -> set[int]:
    """Seeds whose segment at this position is a reference run itself."""
    group, index = position
    segments = reference.curves[group.tasks[index]].segments
    return {run.seed for run in group.runs if run.segments[index] in segments}


def is_reference(position: Position, reference: Reference) -> bool:
    """Whether `independent` would be measured against itself."""
    group, index = position
    own = reference.curves[group.tasks[index]].origin == INDEPENDENT
    return own and bool(shared_seeds(position, reference))


def reference_values(
    part: Sequence[Position], reference: Reference, last: int | None
) -> list[Values]:
    """The reference at each position of a part, of equally many seeds: as if it were alone."""
    keep = [shared_seeds(own, reference) & values_of(own, last).keys() for own in part]
    found = reference.rows([group.tasks[index] for group, index in part], last, keep)
    return [dict(zip(seeds, values.tolist(), strict=True)) for values, seeds in found]


def only(values: Values, seeds: set[int]) -> Values:
    return {seed: value for seed, value in values.items() if seed in seeds}


def matrix(rows: Sequence[Values], seeds: Sequence[int]) -> Array:
    """[rows, seeds], NaN where a seed has no value."""
    return np.array([[row.get(seed, np.nan) for seed in seeds] for row in rows])


def statistic(
    parts: Sequence[Sequence[Position]], reference: Reference, metric: Transfer, window: int
) -> tuple[Statistic, list[int], list[int], int]:
    """The metric as a function of weights, and numbers of seeds.

    These are the seeds of each group of weights, the fewest that a position has of each, and the
    fewest of the method's own. Each part's positions are combined by the metric; the result is the
    mean over parts.
    """
    positions = [position for part in parts for position in part]
    last = window if metric.end_values else None
    ours = [values_of(position, last) for position in positions]
    shared = [shared_seeds(position, reference) for position in positions]
    theirs = [row for part in parts for row in reference_values(part, reference, last)]
    count = min(map(len, ours))
    for index, same in enumerate(shared):
        if common := same & ours[index].keys() & theirs[index].keys():
            ours[index], theirs[index] = (only(row[index], common) for row in (ours, theirs))
    cuts = np.cumsum([len(part) for part in parts])[:-1]

    def combined(mean: Array, base: Array) -> Array:
        pairs = zip(np.split(mean, cuts, axis=1), np.split(base, cuts, axis=1), strict=True)
        return np.asarray(np.mean([metric.combine(a, b) for a, b in pairs], axis=0))

    own_seeds = sorted({seed for row in ours for seed in row})
    if any(shared):
        every = sorted({*own_seeds, *(seed for row in theirs for seed in row)})
        rows, base = matrix(ours, every), matrix(theirs, every)
        # Positions that are shared gain exactly 0, however few seeds they have.
        unshared = [pair for *pair, same in zip(ours, theirs, shared, strict=True) if not same]
        fewest = [min((len(row) for pair in unshared for row in pair), default=count)]

        def paired(weights: Array) -> Array:
            return combined(seed_means(rows, weights), seed_means(base, weights))

        return paired, [len(every)], fewest, count
    base_seeds = sorted({seed for row in theirs for seed in row})
    rows, base = matrix(ours, own_seeds), matrix(theirs, base_seeds)
    seeds = [len(own_seeds), len(base_seeds)]
    fewest = [count, min(map(len, theirs))]
    return lambda w, v: combined(seed_means(rows, w), seed_means(base, v)), seeds, fewest, count
