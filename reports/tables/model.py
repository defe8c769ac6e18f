"""Tables as data: which cells exist, what they hold and which are bold. `formats` writes them."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from cwbench.reports.analysis import names
from cwbench.reports.analysis.scores import Score, Scores, nothing
from cwbench.reports.analysis.study import Group

Setups = dict[str, list[Group]]  # setup -> its groups, one per sequence


@dataclass(frozen=True)
class Cell:
    """One number with its intervals, or a plain text; empty cells say why."""

    score: Score | None = None
    text: str = ""
    bold: bool = False
    asked: int = 0  # seeds that were asked for
    progress: float = 1.0  # of the runs behind the cell
    keys: tuple[str, ...] = ()  # the groups behind the cell

    @property
    def value(self) -> float:
        return self.score.value if self.score else np.nan

    @property
    def empty(self) -> bool:
        return bool(np.isnan(self.value)) and not self.text

    @property
    def why(self) -> str:
        return self.score.why if self.score else ""

    def ends(self, sign: int) -> tuple[float, float]:
        """Worse and better end of the percentile interval, times sign; the value without one."""
        if not self.score or np.isnan(self.score.estimate.low):
            return sign * self.value, sign * self.value
        low, high = sign * self.score.estimate.low, sign * self.score.estimate.high
        return min(low, high), max(low, high)


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

    @property
    def empty(self) -> bool:
        return not any(block.rows for block in self.blocks)

    @property
    def scored(self) -> bool:
        """Whether any cell has an interval."""
        cells = [cell for block in self.blocks for _, row in block.rows for cell in row]
        return any(cell.score and not np.isnan(cell.score.estimate.low) for cell in cells)


def mark_bold(cells: Sequence[Cell], sign: int) -> tuple[Cell, ...]:
    """Bold what may be best: its interval reaches the best mean, or its mean is in the best's.

    The paper's marks were set by hand; this rule gives 222 of its 228.
    """
    known = [cell for cell in cells if not np.isnan(cell.value)]
    if len(known) < 2:
        return tuple(cells)
    best = max(known, key=lambda cell: sign * cell.value)

    def may_be_best(cell: Cell) -> bool:
        far, near = cell.ends(sign)[1], best.ends(sign)[0]
        return bool(far >= sign * best.value or sign * cell.value >= near)  # False for NaN

    return tuple(replace(cell, bold=may_be_best(cell)) for cell in cells)


def by_setup(groups: Sequence[Group]) -> Setups:
    """Setup -> its groups, in the order of the study."""
    found: Setups = {}
    for group in sorted(groups, key=lambda g: (names.method_order(g.method), g.label != g.method)):
        found.setdefault(group.setup, []).append(group)
    return found


def main_setups(groups: Sequence[Group]) -> Setups:
    """Of each method the default options; all its settings if the defaults were not run."""
    setups = by_setup(groups)
    defaults = {g.method for g in groups if g.label == g.method}
    return {
        setup: rows
        for setup, rows in setups.items()
        if rows[0].label == rows[0].method or rows[0].method not in defaults
    }


def titles(setups: Setups) -> tuple[str, ...]:
    """Column titles; settings that would read the same get the start of their fingerprint."""
    plain = [rows[0].title for rows in setups.values()]
    return tuple(
        title if plain.count(title) == 1 else f"{title} ({setup[:4]})"
        for title, setup in zip(plain, setups, strict=True)
    )


def slots(setups: Setups) -> list[int]:
    """Place of each setting in the palette: a method keeps its own in every figure."""
    free = iter(range(len(names.METHODS), 1000))
    taken: set[int] = set()
    found = []
    for groups in setups.values():
        own = names.method_order(groups[0].method)[0]
        place = own if own < len(names.METHODS) and own not in taken else next(free)
        taken.add(place)
        found.append(place)
    return found


def about(groups: Sequence[Group]) -> Cell:
    """An empty cell that knows the runs behind it."""
    if not groups:
        return Cell(score=nothing("not asked for"), progress=0.0)
    return Cell(
        asked=min(len(group.runs) for group in groups),
        progress=sum(group.progress for group in groups) / len(groups),
        keys=tuple(group.key for group in groups),
    )


def score_cell(scores: Scores, groups: Sequence[Group], metric: str, sequences: int = 1) -> Cell:
    """A setting's mean over sequences; empty as long as one of them has no finished run."""
    cell = about(groups)
    if len(groups) == sequences:
        return replace(cell, score=scores.score(groups, metric))
    if not groups:
        return cell
    return replace(cell, score=nothing(f"asked for on {len(groups)} of {sequences} sequences"))


def stacked(
    scores: Scores, family: str, metrics: Sequence[str] = names.HEADLINE
) -> tuple[Block, ...]:
    """One block per metric; a row per sequence and their mean, a column per method."""
    groups = scores.study.of(scores.protocol, family)
    setups = main_setups(groups)
    sequences = list(dict.fromkeys(group.sequence for group in groups))
    blocks = []
    for metric in metrics:
        sign = names.METRICS[metric].sign
        rows = []
        for sequence in sequences:
            cells = tuple(
                score_cell(scores, [g for g in column if g.sequence == sequence], metric)
                for column in setups.values()
            )
            # As in the paper: forgetting of single sequences is not marked, only its mean.
            rows.append((row_name(sequence), cells if sign < 0 else mark_bold(cells, sign)))
        if len(sequences) > 1:
            means = [score_cell(scores, g, metric, len(sequences)) for g in setups.values()]
            rows.append(("mean", mark_bold(means, sign)))
        blocks.append(
            Block(
                title=names.METRICS[metric].title,
                corner=names.FAMILIES[family] if family in ("cw3", "cw6") else "Sequence",
                columns=titles(setups),
                rows=tuple(rows),
                mean=len(sequences) > 1,
            )
        )
    return tuple(blocks)


def row_name(sequence: str) -> str:
    """`cw3-4` is row 4 of its table, others go by their names."""
    return sequence.split("-")[1] if names.family(sequence) in ("cw3", "cw6") else sequence


def long_sequences(scores: Scores) -> tuple[Block, ...]:
    """CW10 and CW20 side by side, a row per method: the paper's third table."""
    families = [name for name in ("cw10", "cw20") if scores.study.of(scores.protocol, name)]
    groups = [g for name in families for g in scores.study.of(scores.protocol, name)]
    setups = main_setups(groups)
    columns = []
    for name in families:
        for metric in names.HEADLINE:
            cells = [
                score_cell(scores, [g for g in rows if g.family == name], metric)
                for rows in setups.values()
            ]
            columns.append(mark_bold(cells, names.METRICS[metric].sign))
    return (
        Block(
            title="",
            corner="Method",
            columns=tuple(names.METRICS[m].short for m in names.HEADLINE) * len(families),
            rows=tuple(zip(titles(setups), zip(*columns, strict=True), strict=True)),
            spans=tuple((names.FAMILIES[name], len(names.HEADLINE)) for name in families),
        ),
    )
