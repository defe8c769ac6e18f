"""Two methods on the seeds and sequences they share."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from cwbench.reports.analysis import comparison, names
from cwbench.reports.analysis.scores import SEED, Score, Scores, one_seed, seed_matrix
from cwbench.reports.analysis.setups import main_setups, titles
from cwbench.reports.analysis.study import Group
from cwbench.reports.tables.formats import number
from cwbench.reports.tables.model import Block, Cell, empty_cell

Array = NDArray[np.float64]
DIFFERENCE = 0.05  # the difference the power line asks about


@dataclass(frozen=True, eq=False)
class Pair:
    """Scores [S, R] of two settings, of the seeds that both have finished."""

    first: str
    second: str
    a: Array
    b: Array
    keys: tuple[str, ...]  # of the runs, for links

    @property
    def differences(self) -> Array:
        """Second minus first, one number per seed."""
        return comparison.paired_differences(self.b, self.a)

    @property
    def p_value(self) -> float:
        """NaN after one seed, which cannot be tested."""
        if len(self.differences) < 2:
            return np.nan
        return comparison.sign_flip_test(self.differences, np.random.default_rng(SEED))


def pairs(scores: Scores, family: str, metric: str) -> list[Pair]:
    """Every two settings that share a finished seed, or those with the one compared against."""
    setups = main_setups(scores.groups(family))
    named = dict(zip(titles(setups), setups.values(), strict=True))
    found = (
        _pair(scores, (first, named[first]), (second, named[second]), metric)
        for first, second in _names_of_pairs(scores, named)
    )
    return [pair for pair in found if pair]


def adjusted(found: Sequence[Pair]) -> Array:
    """Holm's p value of each pair; NaN for those that cannot be tested."""
    return comparison.holm(np.array([pair.p_value for pair in found]))


def p_text(value: float, digits: int = 2) -> str:
    return number(value, digits) if value == value else "–"


def comparisons(scores: Scores, family: str, metric: str) -> tuple[Block, ...]:
    """A row per pair."""
    found = pairs(scores, family, metric)
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
    key = names.method_key(against)
    base = [title for title, groups in named.items() if names.method_key(groups[0].method) == key]
    return [
        (first, second)
        for index, first in enumerate(base)
        for second in named
        if second not in base[: index + 1]  # versions of it: in one direction
    ]


def _pair(
    scores: Scores, one: tuple[str, list[Group]], other: tuple[str, list[Group]], metric: str
) -> Pair | None:
    """None when they share no finished seed."""
    (first_title, first), (second_title, second) = one, other
    if any(group.joint for group in (*first, *second)) and metric != "average_performance":
        return None
    common = {g.sequence for g in first} & {g.sequence for g in second}
    first, second = ([g for g in side if g.sequence in common] for side in (first, second))
    if not common:
        return None
    (a, a_seeds), (b, b_seeds) = (seed_matrix(scores, side, metric) for side in (first, second))
    shared = [seed for seed in a_seeds if seed in b_seeds]
    a, b = a[:, [a_seeds.index(s) for s in shared]], b[:, [b_seeds.index(s) for s in shared]]
    whole = ~np.isnan(a + b).any(0)
    if not whole.any():
        return None
    keys = empty_cell([*first, *second]).keys
    return Pair(first_title, second_title, a[:, whole], b[:, whole], keys)


def _cells(scores: Scores, pair: Pair, sign: int, holm: float) -> tuple[Cell, ...]:
    differences = pair.differences
    count = len(differences)
    better = comparison.improvement_estimate(sign * pair.b, sign * pair.a, scores.level)
    spread = float(differences.std(ddof=1)) if count > 1 else np.nan
    return (
        Cell(scores.mean(differences[None], count), keys=pair.keys),
        Cell(text=p_text(pair.p_value, 4)),
        Cell(text=p_text(holm, 4)),
        Cell(Score(better, count, one_seed(count)), keys=pair.keys),
        Cell(text=str(count)),
        Cell(text=_seeds_needed(spread, scores.level)),
    )


def _seeds_needed(spread: float, level: float) -> str:
    """A dash after one seed, or after equal differences, which do not tell how far they spread."""
    if not spread > 1e-9:
        return "-"
    return str(comparison.seeds_needed(DIFFERENCE, spread, level=level))
