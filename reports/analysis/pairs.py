"""The matrices of task pairs: first task, second task, forgetting of the first."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cwbench.reports.analysis import metrics, names
from cwbench.reports.analysis.scores import Score, Scores, align, nothing
from cwbench.reports.analysis.setups import all_settings
from cwbench.reports.analysis.study import Group

Array = NDArray[np.float64]
SAME = 1e-9  # 0.4 - 0.3 is not above 0.1
QUANTITIES = {
    "first": "First task performance",
    "second": "Second task performance",
    "forgetting": "First task forgetting",
}


@dataclass(frozen=True, eq=False)
class PairMatrices:
    """Means over seeds, [N, N] each with the first task as row; NaN where no run has ended."""

    title: str
    of: str  # the sequence whose tasks these are; empty for Continual World's ten
    values: dict[str, Array]
    averages: dict[str, Score]
    groups: dict[tuple[int, int], Group]  # (first task, second task) -> its runs

    @property
    def firsts(self) -> dict[int, str]:
        """Number and name of every first task that was asked for, in order."""
        return {pair[0]: group.tasks[0] for pair, group in sorted(self.groups.items())}

    @property
    def seconds(self) -> dict[int, str]:
        found = {pair[1]: group.tasks[1] for pair, group in self.groups.items()}
        return dict(sorted(found.items()))

    @property
    def pairs(self) -> int:
        return int((~np.isnan(self.values["second"])).sum())

    def counts(self) -> dict[str, int]:
        """The counts the paper quotes, over the pairs that have ended."""
        second, lost = self.values["second"], self.values["forgetting"]
        return {
            "second task at zero": int((second == 0).sum()),
            "second task above 0, below 0.5": int(((second > 0) & (second < 0.5 - SAME)).sum()),
            "forgetting above 0.1": int((lost > 0.1 + SAME).sum()),
        }


def pair_ids(sequence: str) -> tuple[int, int]:
    first, second = map(int, sequence.split("-")[-2:])
    return first, second


def by_matrix(groups: Sequence[Group]) -> dict[str, list[Group]]:
    """Title -> groups: a matrix for each setting and sequence whose tasks were paired."""
    found: dict[str, list[Group]] = {}
    for setting in all_settings(groups):
        for group in setting.groups:
            of = names.pairs_of(group.sequence)
            title = f"{setting.title}, {of}" if of else setting.title
            found.setdefault(title, []).append(group)
    return found


def per_run(group: Group, window: int) -> dict[str, Array]:
    """[R] each."""
    end = metrics.task_performance(group.complete, window)
    lost = metrics.task_forgetting(group.complete, window)
    return {"first": end[:, 0], "second": end[:, 1], "forgetting": lost[:, 0]}


def matrices(scores: Scores, groups: list[Group]) -> PairMatrices:
    """Matrices of one setting from its groups on the pairs of one sequence."""
    by_pair = {pair_ids(group.sequence): group for group in groups}
    runs = {pair: per_run(group, scores.window) for pair, group in by_pair.items()}
    size = 1 + max(max(pair) for pair in by_pair)
    values, averages = {}, {}
    for name in QUANTITIES:
        values[name] = np.full((size, size), np.nan)
        for pair, one in runs.items():
            if not np.isnan(one[name]).all():
                values[name][pair] = np.nanmean(one[name])
        rows, seeds = align(list(by_pair.values()), [one[name][None] for one in runs.values()])
        averages[name] = _average(scores, rows, seeds, (-1 if name == "forgetting" else 0, 1))
    of = names.pairs_of(groups[0].sequence)
    return PairMatrices(groups[0].title, of, values, averages, by_pair)


def _average(scores: Scores, rows: Array, seeds: int, bounds: tuple[float, float]) -> Score:
    ended = ~np.isnan(rows).all(1)
    if not ended.all():
        return nothing(f"{int(ended.sum())} of {len(rows)} pairs have ended")
    return scores.mean(rows, seeds, bounds)
