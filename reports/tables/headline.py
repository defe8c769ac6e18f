"""The headline tables, in the paper's layout."""

from collections.abc import Sequence

from cwbench.reports.analysis import names
from cwbench.reports.analysis.scores import Scores, lacks_tasks
from cwbench.reports.analysis.setups import main_settings, titles
from cwbench.reports.tables.model import Block, Cell, mark_bold, score_cell, scored_columns


def stacked(
    scores: Scores, family: str, metrics: Sequence[str] = names.HEADLINE
) -> tuple[Block, ...]:
    """One block per metric; a row per sequence and their mean, a column per method."""
    groups, settings = scores.groups(family), scores.settings(family)
    sequences = list(dict.fromkeys(group.sequence for group in groups))
    blocks = []
    for metric in metrics:
        sign = names.METRICS[metric].sign
        rows = []
        for sequence in sequences:
            cells = tuple(
                score_cell(scores, [g for g in one.groups if g.sequence == sequence], metric)
                for one in settings
            )
            # As in the paper: forgetting of single sequences is not marked, only its mean.
            rows.append((row_name(sequence), cells if sign < 0 else mark_bold(cells, sign)))
        if len(sequences) > 1:
            means = [score_cell(scores, one.groups, metric, len(sequences)) for one in settings]
            lacking = {g.sequence for g in groups if lacks_tasks(g, metric)}
            over = f" ({len(sequences) - len(lacking)} of {len(sequences)})" if lacking else ""
            rows.append((f"mean{over}", mark_bold(means, sign)))
        blocks.append(
            Block(
                title=names.METRICS[metric].title,
                corner=names.FAMILIES[family] if family in ("cw3", "cw6") else "Sequence",
                columns=titles(settings),
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
    families = [name for name in ("cw10", "cw20") if scores.groups(name)]
    groups = [g for name in families for g in scores.groups(name)]
    settings = main_settings(groups)
    columns: list[tuple[Cell, ...]] = []
    for name in families:
        rows = [[group for group in one.groups if group.family == name] for one in settings]
        columns += scored_columns(scores, rows, names.HEADLINE)
    return (
        Block(
            title="",
            corner="Method",
            columns=tuple(names.METRICS[m].short for m in names.HEADLINE) * len(families),
            rows=tuple(zip(titles(settings), zip(*columns, strict=True), strict=True)),
            spans=tuple((names.FAMILIES[name], len(names.HEADLINE)) for name in families),
        ),
    )
