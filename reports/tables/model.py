"""Tables as data: which cells exist, what they hold and which are bold. `formats` writes them."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from cwbench.reports.analysis import names
from cwbench.reports.analysis.intervals import INTERVALS, LEVEL
from cwbench.reports.analysis.scores import Score, Scores, lacks_tasks, nothing
from cwbench.reports.analysis.study import Group

DASH = "A dash means that no number exists"  # in captions; Markdown gives the reason instead
Section = Literal["headline", "details", "resources", "published"]  # where a table is shown


@dataclass(frozen=True)
class Cell:
    """One number with its intervals, or a plain text; empty cells say why."""

    score: Score | None = None
    text: str = ""
    amount: float = np.nan  # what a text is about, to sort by
    any_size: bool = False  # not a rate: may be so large or small that two decimals are no good
    bold: frozenset[str] = frozenset()  # the kinds of interval by which it may be the best
    asked: int = 0  # seeds that were asked for; of several sequences on the one that lacks most
    ended: int | None = None  # seeds that one has, where they are not the score's
    progress: float = 1.0  # of the runs behind the cell
    keys: tuple[str, ...] = ()  # the groups behind the cell

    @property
    def value(self) -> float:
        return self.score.value if self.score else np.nan

    @property
    def empty(self) -> bool:
        return bool(np.isnan(self.value)) and not self.text

    @property
    def seeds(self) -> int:
        """Seeds behind a number, of those asked for."""
        if self.ended is None or self.empty:
            return self.score.seeds if self.score else 0
        return self.ended

    @property
    def why(self) -> str:
        return self.score.why if self.score else ""

    def has_interval(self, interval: str) -> bool:
        return self.score is not None and not np.isnan(self.score.estimate.ends(interval)[0])

    def ends(self, sign: int, interval: str) -> tuple[float, float]:
        """Worse and better end of an interval, times sign; the value without one."""
        if self.score is None or not self.has_interval(interval):
            return sign * self.value, sign * self.value
        low, high = self.score.estimate.ends(interval)
        return min(sign * low, sign * high), max(sign * low, sign * high)


@dataclass(frozen=True)
class Block:
    """Rows under one title. The last row is a mean over the others if `mean` is set."""

    title: str
    corner: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]
    mean: bool = False
    spans: tuple[tuple[str, int], ...] = ()  # titles over groups of columns

    @property
    def full_columns(self) -> tuple[str, ...]:
        """Column titles that are clear without the spans above them."""
        spans = [title for title, count in self.spans for _ in range(count)]
        if not spans:
            return self.columns
        return tuple(f"{a} {b}" for a, b in zip(spans, self.columns, strict=True))


@dataclass(frozen=True)
class Table:
    name: str
    caption: str
    blocks: tuple[Block, ...]
    footer: dict[str, str] = field(default_factory=dict)
    section: Section = "headline"
    level: float = LEVEL  # of its intervals
    brackets: str = ""  # how its intervals are made, where they are of one kind only
    ending: str = ""  # of its files and its label, where there are several protocols

    @property
    def file(self) -> str:
        """The name of its files, without what follows for another kind of interval."""
        return self.name + self.ending

    @property
    def empty(self) -> bool:
        return not any(block.rows for block in self.blocks)

    @property
    def scored(self) -> bool:
        """Whether any cell has intervals of several kinds."""
        if self.brackets:
            return False
        cells = [cell for block in self.blocks for _, row in block.rows for cell in row]
        return any(cell.score and not np.isnan(cell.score.estimate.low) for cell in cells)


@dataclass(frozen=True)
class Entry:
    """How one table is made; nothing is computed until it is asked for."""

    name: str
    section: Section
    families: tuple[str, ...]
    caption: str
    blocks: Callable[[], tuple[Block, ...]]
    brackets: str = ""  # as in Table


def mark_bold(cells: Sequence[Cell], sign: int) -> tuple[Cell, ...]:
    """Bold what may be best: its interval reaches the best mean, or its mean is in the best's.

    Nothing is bold if one of them has no interval: after one seed any method may be the best.
    Each kind of interval gives its own marks, so a table's follow the interval it shows.
    No rule gives all of the paper's 228 marks; this one gives 222.
    """
    known = [cell for cell in cells if not np.isnan(cell.value)]
    if len(known) < 2:
        return tuple(cells)
    best = max(known, key=lambda cell: sign * cell.value)

    def may_be_best(cell: Cell, interval: str) -> bool:
        if not all(one.has_interval(interval) for one in known):
            return False
        far, near = cell.ends(sign, interval)[1], best.ends(sign, interval)[0]
        gaps = far - sign * best.value, sign * cell.value - near
        return max(gaps) >= -1e-9  # equal means may differ in the last bit; False for NaN

    return tuple(
        replace(cell, bold=frozenset(kind for kind in INTERVALS if may_be_best(cell, kind)))
        for cell in cells
    )


def empty_cell(groups: Sequence[Group], seeds: Sequence[int] | None = None) -> Cell:
    """An empty cell that knows the runs behind it.

    `seeds` are how many of each group are behind its number; by default the score says it.
    """
    if not groups:
        return Cell(score=nothing("not asked for"), progress=0.0)
    counts = [len(group.finished) for group in groups] if seeds is None else seeds
    asked = [len(group.runs) for group in groups]
    some, every = min(zip(counts, asked, strict=True), key=lambda pair: (pair[0] / pair[1], *pair))
    return Cell(
        asked=every,
        ended=some if seeds is not None and len(groups) > 1 else None,
        progress=sum(group.progress for group in groups) / len(groups),
        keys=tuple(group.key for group in groups),
    )


def score_cell(scores: Scores, groups: Sequence[Group], metric: str, sequences: int = 1) -> Cell:
    """A setting's mean over sequences; empty as long as one of them has no finished run."""
    defined = [group for group in groups if not lacks_tasks(group, metric)] or groups
    cell = empty_cell(defined, [scores.usable(group, metric) for group in defined])
    if len(groups) == sequences:
        return replace(cell, score=scores.score(groups, metric))
    if not groups:
        return cell
    return replace(cell, score=nothing(f"asked for on {len(groups)} of {sequences} sequences"))


def scored_columns(
    scores: Scores, rows: Iterable[Sequence[Group]], metrics: Sequence[str], sequences: int = 1
) -> list[tuple[Cell, ...]]:
    """A column per metric with a cell per setting, the best ones bold."""
    settings = list(rows)
    return [
        mark_bold(
            [score_cell(scores, groups, metric, sequences) for groups in settings],
            names.METRICS[metric].sign,
        )
        for metric in metrics
    ]
