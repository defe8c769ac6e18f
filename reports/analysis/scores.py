"""From groups of runs to estimates: what a table cell, a bar or a dot shows."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cwbench.reports.analysis import metrics, names, stability
from cwbench.reports.analysis.arrange import arrange
from cwbench.reports.analysis.intervals import RESAMPLES, Estimate, estimate, mean_estimate
from cwbench.reports.analysis.reference import INDEPENDENT, Reference, find
from cwbench.reports.analysis.setups import Setting, all_settings, main_settings
from cwbench.reports.analysis.study import Group, Protocol, Study
from cwbench.reports.analysis.transfer import (
    TRANSFER,
    Position,
    is_reference,
    shared_seeds,
    values_of,
)
from cwbench.reports.analysis.transfer import statistic as transfer_statistic
from cwbench.store.runs import Runs

Array = NDArray[np.float64]
FREE = (-np.inf, np.inf)
SEED = 0  # every interval starts its generator here, so none depends on what was computed before

PER_RUN = {
    "average_performance": metrics.average_performance,
    "forgetting": metrics.forgetting,
    "backward_transfer": metrics.backward_transfer,
    "anytime_performance": metrics.anytime_performance,
    "worst_task": metrics.worst_task,
    "minimum_after_learning": stability.minimum_after_learning,
    "drop_depth": stability.drop_depth,
    "drop_length": stability.drop_length,
}
NEEDS_EARLIER = ("backward_transfer", "minimum_after_learning", "drop_depth", "drop_length")
ALSO_JOINT = ("average_performance", "worst_task")  # defined when all tasks are trained at once
AT_ONCE = "not defined: all tasks are trained at once"
PER_TASK = {"average_performance": metrics.task_performance, "forgetting": metrics.task_forgetting}


@dataclass(frozen=True)
class Score:
    """An estimate, how many seeds it has, and why it is empty if it is."""

    estimate: Estimate
    seeds: int
    why: str = ""

    @property
    def value(self) -> float:
        return self.estimate.value


def nothing(why: str) -> Score:
    return Score(Estimate(np.nan), 0, why)


@dataclass(eq=False)
class Scores:
    """All estimates of one protocol."""

    study: Study
    protocol: Protocol
    resamples: int = RESAMPLES
    _references: dict[str, Reference] = field(default_factory=dict)
    _scores: dict[tuple[str, ...], Score] = field(default_factory=dict)
    _per_run: dict[tuple[str, str], Array] = field(default_factory=dict)

    @cached_property
    def window(self) -> int:
        return self.study.window(self.protocol)

    @property
    def level(self) -> float:
        return self.study.options.level

    @cached_property
    def families(self) -> list[str]:
        """Those with tables and figures of methods that there are runs of."""
        return [family for family in names.SEQUENCES if self.groups(family)]

    def groups(self, family: str | None = None) -> list[Group]:
        """The runs of this protocol, on all sequences or on those of one family."""
        return self.study.of(self.protocol, family)

    def settings(self, family: str) -> list[Setting]:
        """The settings on a family of sequences, each method's default options if they were run."""
        return main_settings(self.groups(family))

    def joined_settings(self, families: Sequence[str]) -> list[Setting]:
        """The settings of several families, for what they share: a legend, colours."""
        every = [setting for family in families for setting in self.settings(family)]
        return all_settings([group for setting in every for group in setting.groups])

    def title(self, family: str) -> str:
        """What a family of sequences is called."""
        return self.study.family_title(self.protocol, family)

    def reference_of(self, group: Group) -> Reference:
        """The single-task reference for a group's setting."""
        if group.setup not in self._references:
            self._references[group.setup] = find(self.study, self.protocol, group)
        return self._references[group.setup]

    def reference_note(self, *families: str) -> str:
        """Where `independent` stands in for single-task runs, as the end of a caption."""
        origins: dict[str, set[bool]] = {}  # of each task: whether it is `independent`
        for group in (group for family in families for group in self.groups(family)):
            for task, curves in self.reference_of(group).curves.items():
                if task in group.tasks and not group.joint:
                    origins.setdefault(task, set()).add(curves.origin == INDEPENDENT)
        found = [
            task if all(origins[task]) else f"{task} (some settings)"
            for task in sorted(origins)
            if any(origins[task])
        ]
        runs = f"runs of {names.METHODS['independent']}, which learns each task from scratch"
        return f" Reference of transfer on {', '.join(found)}: {runs}." if found else ""

    def per_run(self, group: Group, metric: str) -> Array:
        """[R]: one value per seed."""
        key = (group.key, metric)
        if key not in self._per_run:
            self._per_run[key] = self._each_run(group, metric)
        return self._per_run[key]

    def _each_run(self, group: Group, metric: str) -> Array:
        """Transfer is a ratio of means over seeds: a seed's value is only for showing it."""
        if metric == "training_performance":
            return np.where(_ended(group), metrics.training_performance(group.training), np.nan)
        if metric in PER_RUN:
            return PER_RUN[metric](group.complete, self.window)
        reference, kind = self.reference_of(group), TRANSFER[metric]
        last, start = (self.window if kind.end_values else None), 0 if kind.first else 1
        tasks = group.tasks[start:]  # as in the score: the first may have another reference
        positions = [(group, index) for index in range(start, len(group.tasks))]
        if group.joint or reference.missing(tasks) or lacks_tasks(group, metric):
            return np.full(len(group.runs), np.nan)
        if any(is_reference(position, reference) for position in positions):
            return np.full(len(group.runs), np.nan)
        base = reference.means(tasks, last)
        own = group.own_windows[:, start:, 0 if last is None else -last :].mean(2)
        for column, position in enumerate(positions):
            if shared_seeds(position, reference):  # gains exactly 0, as in the score
                own[:, column] = np.where(np.isnan(own[:, column]), np.nan, base[column])
        return kind.combine(own, base)

    def usable(self, group: Group, metric: str) -> int:
        """Seeds that have ended with the evaluations that the metric needs."""
        if metric in TRANSFER:  # as in its statistic: at the position that has fewest
            return int((~np.isnan(group.own_windows.mean(2))).sum(0).min())
        return int((~np.isnan(self.per_run(group, metric))).sum())

    def usable_at(self, position: Position, metric: str) -> int:
        """The same for the metric of one task."""
        if metric in TRANSFER:
            return len(values_of(position, None))
        return int((~np.isnan(self._each_at(position, metric))).sum())

    def _each_at(self, position: Position, metric: str) -> Array:
        """[R]: one value per seed of the metric of one task."""
        group, index = position
        return PER_TASK[metric](group.complete, self.window)[:, index]

    def score(self, groups: Sequence[Group], metric: str) -> Score:
        """The metric's mean over groups of one setting on several sequences, or on one.

        Sequences on which it is not defined are left out, and counted in the reason.
        """
        key = (metric, *(group.key for group in groups))
        if key not in self._scores:  # tables, figures and the page ask for the same ones
            self._scores[key] = self._score(groups, metric)
        return self._scores[key]

    def _score(self, groups: Sequence[Group], metric: str) -> Score:
        if metric not in ALSO_JOINT and any(group.joint for group in groups):
            return nothing(AT_ONCE)
        several = [group for group in groups if not lacks_tasks(group, metric)]
        if not several:
            return nothing("not defined for a single task")
        if len(several) < len(groups):
            score = self._score(several, metric)
            if np.isnan(score.value):
                return score
            over = f"over the {len(several)} of {len(groups)} sequences with several tasks"
            return replace(score, why="; ".join(filter(None, (score.why, over))))
        if metric in TRANSFER:
            return self._transfer([[(g, i) for i in range(len(g.tasks))] for g in groups], metric)
        rows, seeds = align(groups, [self.per_run(group, metric)[None] for group in groups])
        if metric == "training_performance" and not seeds and all(_ended(g).any() for g in groups):
            return nothing("no training episode ended in the last evaluation window")
        return self.mean(rows, seeds, names.METRICS[metric].bounds)

    def task_score(self, positions: Sequence[Position], metric: str) -> Score:
        """The metric of one task, averaged over the positions where it occurs."""
        groups = [group for group, _ in positions]
        if metric != "average_performance" and any(group.joint for group in groups):
            return nothing(AT_ONCE)
        if metric in TRANSFER:
            return self._transfer([[position] for position in positions], metric)
        values = [self._each_at(position, metric)[None] for position in positions]
        rows, seeds = align(groups, values)
        return self.mean(rows, seeds, names.METRICS[metric].bounds)

    def mean(self, rows: Array, seeds: int, bounds: tuple[float, float] = FREE) -> Score:
        """The mean over sequences of values [S, R] whose columns are seeds."""
        if np.isnan(rows).all(1).any():
            return nothing("no finished run")
        value = mean_estimate(
            rows, rng=SEED, resamples=self.resamples, level=self.level, bounds=bounds
        )
        return Score(value, seeds, one_seed(seeds))

    def _transfer(self, parts: Sequence[Sequence[Position]], metric: str) -> Score:
        """A transfer metric: positions are combined within a part, then parts are averaged."""
        kind = TRANSFER[metric]
        parts = [[(g, i) for g, i in part if i > 0 or kind.first] for part in parts]
        positions = [position for part in parts for position in part]
        reference = self.reference_of(positions[0][0])
        tasks = [group.tasks[index] for group, index in positions]
        if reference.missing(tasks):
            return nothing(reference.why(tasks))
        if any(is_reference(position, reference) for position in positions):
            return nothing("not defined: these runs are the reference")
        if not all(values_of(position, None) for position in positions):
            return nothing("no finished run")
        statistic, groups, fewest, seeds = transfer_statistic(parts, reference, kind, self.window)
        value = estimate(
            statistic,
            groups,
            rng=SEED,
            resamples=self.resamples,
            level=self.level,
            bounds=names.METRICS[metric].bounds,
            fewest=fewest,
        )
        if np.isnan(value.value):
            return nothing("not defined: the reference solves a task at every evaluation")
        if np.isnan(value.low) and min(fewest) > 1:
            return Score(value, seeds, "no interval: all but one reference seed solve a task")
        return Score(value, seeds, one_seed(min(seeds, reference.seeds(tasks))))


def lacks_tasks(group: Group, metric: str) -> bool:
    """Whether a sequence has one task only, and the metric is about earlier or later ones."""
    needs = metric in NEEDS_EARLIER or (metric in TRANSFER and not TRANSFER[metric].first)
    return needs and len(group.tasks) == 1


def one_seed(seeds: int) -> str:
    return "one seed: no interval" if seeds == 1 else ""


def by_seed(groups: Sequence[Group], values: Sequence[Array]) -> tuple[Array, list[int]]:
    """Values [N, R] of each group as rows of one matrix, and the seeds of its columns: of all."""
    seeds = sorted({seed for group in groups for seed in group.seeds})
    column = {seed: index for index, seed in enumerate(seeds)}
    rows = np.full((sum(len(value) for value in values), len(seeds)), np.nan)
    start = 0
    for group, value in zip(groups, values, strict=True):
        rows[start : start + len(value), [column[seed] for seed in group.seeds]] = value
        start += len(value)
    return rows, seeds


def _ended(group: Group) -> Array:
    """[R]: whether a seed's run has ended."""
    return np.asarray(~np.isnan(group.complete).all((1, 2, 3)))


def align(groups: Sequence[Group], values: Sequence[Array]) -> tuple[Array, int]:
    """`by_seed` without seeds that have no value, and how many seeds every row has."""
    rows, _ = by_seed(groups, values)
    known = ~np.isnan(rows)
    return rows[:, known.any(0)], int(known.sum(1).min())


def seed_matrix(scores: Scores, groups: Sequence[Group], metric: str) -> tuple[Array, list[int]]:
    """[S, R] values of one setting with the seeds of its columns."""
    return by_seed(groups, [scores.per_run(group, metric)[None] for group in groups])


def run_metrics(loaded: Runs) -> pd.DataFrame:
    """One row per run that has ended, one column per metric that a single run has."""
    study = arrange(loaded)
    rows = [row for protocol in study.protocols for row in _rows(Scores(study, protocol))]
    table = pd.DataFrame(rows, columns=["run", *PER_RUN])
    return table.drop_duplicates("run")  # a run may be under several protocol names


def run_end_values(loaded: Runs) -> dict[str, Array]:
    """Run that has ended -> success on each task at its end, [N]; NaN without all evaluations."""
    study, found = arrange(loaded), {}
    for group in study.groups:
        values = metrics.task_performance(group.complete, study.window(group.protocol))
        ended = zip(group.runs, values, strict=True)
        found.update({run.name: own for run, own in ended if run.state == "done"})
    return found


def _rows(scores: Scores) -> Iterator[dict[str, Any]]:
    for group in scores.groups():
        defined = [metric for metric in PER_RUN if metric in ALSO_JOINT or not group.joint]
        values = {metric: scores.per_run(group, metric) for metric in defined}
        for index, run in enumerate(group.runs):
            if run.state == "done":
                yield {"run": run.name, **{name: own[index] for name, own in values.items()}}
