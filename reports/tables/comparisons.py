"""Two methods on the seeds and sequences they share."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from cwbench.reports.analysis import comparison, names
from cwbench.reports.analysis.scores import (
    ALSO_JOINT,
    SEED,
    Score,
    Scores,
    nothing,
    one_seed,
    seed_matrix,
)
from cwbench.reports.analysis.study import Group
from cwbench.reports.tables.formats import number
from cwbench.reports.tables.model import Block, Cell

Array = NDArray[np.float64]
DIFFERENCE = 0.05  # the difference the power line asks about
NO_SEED = "no seed has ended with both on all shared sequences"
NOT_ENDED = "no finished run"
NONE = "–"


@dataclass(frozen=True, eq=False)
class Pair:
    """Scores [S, R] of two settings, of the seeds that both have finished; R may be 0."""

    first: str
    second: str
    a: Array
    b: Array
    keys: tuple[str, ...]  # of the runs, for links
    why: str = ""  # it has no seeds, or not all shared sequences

    @property
    def seeds(self) -> int:
        return int(self.a.shape[1])

    @property
    def differences(self) -> Array:
        """Second minus first, one number per seed."""
        return comparison.paired_differences(self.b, self.a)

    @property
    def p_value(self) -> float:
        """NaN after one seed, which cannot be tested."""
        if self.seeds < 2:
            return np.nan
        return comparison.sign_flip_test(self.differences, np.random.default_rng(SEED))


def pairs(scores: Scores, family: str, metric: str) -> list[Pair]:
    """Every two settings that share a finished seed, or those with the one compared against."""
    return [pair for pair in every_pair(scores, family, metric) if pair.seeds]


def every_pair(scores: Scores, family: str, metric: str) -> list[Pair]:
    """The same with those that share none although both have finished runs.

    Methods that train all tasks at once are in no pair of a metric that they cannot have.
    """
    named = {
        setting.title: setting.groups
        for setting in scores.settings(family)
        if metric in ALSO_JOINT or not any(group.joint for group in setting.groups)
    }
    found = [
        _pair(scores, (first, named[first]), (second, named[second]), metric)
        for first, second in _names_of_pairs(scores, named)
    ]
    found = [pair for pair in found if pair.why != NOT_ENDED]
    return found if any(pair.seeds or pair.why == NO_SEED for pair in found) else []


def adjusted(found: Sequence[Pair]) -> Array:
    """Holm's p value of each pair; NaN for those that cannot be tested."""
    return comparison.holm(np.array([pair.p_value for pair in found]))


def p_text(value: float, digits: int = 2) -> str:
    return number(value, digits) if value == value else NONE


def comparisons(scores: Scores, family: str, metric: str) -> tuple[Block, ...]:
    """A row per pair."""
    found = every_pair(scores, family, metric)
    rows = tuple(
        (f"{pair.second} - {pair.first}", _cells(scores, pair, names.METRICS[metric].sign, holm))
        for pair, holm in zip(found, adjusted(found), strict=True)
    )
    tests = ("Difference", "p (sign flip)", "p (Holm)", "P(better)")
    columns = (*tests, "Seeds", f"Seeds to see {DIFFERENCE:g}")
    return (Block(names.METRICS[metric].title, "Pair", columns, rows),)


def _names_of_pairs(scores: Scores, named: Mapping[str, list[Group]]) -> list[tuple[str, str]]:
    """All pairs of settings, or those with the method that others are compared against."""
    against = scores.study.options.against
    if against is None:
        return list(combinations(named, 2))
    base = [
        title for title, groups in named.items() if names.same_method(groups[0].method, against)
    ]
    return [
        (first, second)
        for index, first in enumerate(base)
        for second in named
        if second not in base[: index + 1]  # versions of it: in one direction
    ]


def _pair(
    scores: Scores, one: tuple[str, list[Group]], other: tuple[str, list[Group]], metric: str
) -> Pair:
    """On the sequences that both ran and the metric is defined for."""
    (first_title, first), (second_title, second) = one, other
    both = [*first, *second]
    shared = {g.sequence for g in first} & {g.sequence for g in second}
    undefined = {group.sequence for group in both if _undefined(scores, group, metric)}
    used = shared - undefined
    what, why = names.METRICS[metric].title.lower(), ""
    if len(used) < len(shared):
        why = f"over the {len(used)} of {len(shared)} shared sequences with {what}"
    if not used:
        why = f"no shared sequence with {what}" if shared else "no shared sequence"
    first, second = ([g for g in side if g.sequence in used] for side in (first, second))
    a, b = _whole_seeds(scores, first, second, metric) if used else np.empty((2, 1, 0))
    if used and not a.size:
        ended = all(any(group.finished for group in side) for side in (first, second))
        why = NO_SEED if ended else NOT_ENDED
    return Pair(first_title, second_title, a, b, tuple(g.key for g in (*first, *second)), why)


def _undefined(scores: Scores, group: Group, metric: str) -> bool:
    """Whether runs that have ended have no value, as transfer without a reference."""
    ended = scores.usable(group, metric) > 0
    return ended and bool(np.isnan(scores.per_run(group, metric)).all())


def _whole_seeds(
    scores: Scores, first: list[Group], second: list[Group], metric: str
) -> tuple[Array, Array]:
    """[S, R] each, of the seeds that both have on all sequences."""
    (a, a_seeds), (b, b_seeds) = (seed_matrix(scores, side, metric) for side in (first, second))
    shared = [seed for seed in a_seeds if seed in b_seeds]
    a, b = a[:, [a_seeds.index(s) for s in shared]], b[:, [b_seeds.index(s) for s in shared]]
    whole = ~np.isnan(a + b).any(0)
    return a[:, whole], b[:, whole]


def _cells(scores: Scores, pair: Pair, sign: int, holm: float) -> tuple[Cell, ...]:
    differences, count = pair.differences, pair.seeds
    if not count:
        empty, none = Cell(nothing(pair.why), keys=pair.keys), Cell(text=NONE)
        return empty, none, none, empty, Cell(text="0"), none
    mean = scores.mean(differences[None], count)
    mean = replace(mean, why="; ".join(filter(None, (mean.why, pair.why))))
    better = comparison.improvement_estimate(sign * pair.b, sign * pair.a, scores.level)
    spread = float(differences.std(ddof=1)) if count > 1 else np.nan
    return (
        Cell(mean, keys=pair.keys),
        Cell(text=p_text(pair.p_value, 4)),
        Cell(text=p_text(holm, 4)),
        Cell(Score(better, count, one_seed(count)), keys=pair.keys),
        Cell(text=str(count)),
        Cell(text=_seeds_needed(spread, scores.level)),
    )


def _seeds_needed(spread: float, level: float) -> str:
    """A dash after one seed, or after equal differences, which do not tell how far they spread."""
    if not spread > 1e-9:
        return NONE
    return str(comparison.seeds_needed(DIFFERENCE, spread, level=level))
