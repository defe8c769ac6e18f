"""Each published cell of a table of methods next to ours, with a verdict: `--compare paper`."""

from collections.abc import Container, Iterable, Iterator, Set
from dataclasses import replace
from functools import partial

import numpy as np

from cwbench.reports.analysis import names
from cwbench.reports.analysis.changes import changed, full_title
from cwbench.reports.analysis.provenance import versions_of
from cwbench.reports.analysis.scores import Score, Scores, nothing
from cwbench.reports.analysis.study import SUCCESS_TITLES, Group
from cwbench.reports.tables import paper_numbers
from cwbench.reports.tables.formats import number
from cwbench.reports.tables.model import Block, Cell, Entry, empty_cell
from cwbench.reports.tables.paper_numbers import Published

METHODS = ("finetuning", "ewc", "packnet", "clonex", "perfect_memory", "recall")
VERDICTS = {  # how a cell's text ends -> how the summary counts it
    "agrees": "agree",
    " differs": "differ",
    "cannot tell at this n": "cannot tell at this number of seeds",
    "protocol differs": "were measured under another protocol",
    "published cell is impossible": "are impossible as published",
}
SUCCESS = "v1-any"  # how the papers on Continual World count an episode as solved
MOST_NAMED = 8  # settings in a caption


def environment(scores: Scores, version: str = "V1", *, intervals: bool = True) -> str:
    """What differs from the environment of the published numbers, whatever the protocol.

    `version` is their Meta-World's; `intervals`: whether they have any.
    """
    records = scores.study.used
    versions = versions_of(records)
    simulator = ", ".join(f"{k} {versions.get(k, '?')}" for k in ("metaworld", "mujoco"))
    tf32 = any((record.get("device") or {}).get("tf32") for record in records)
    success = SUCCESS_TITLES[scores.study.success_of(scores.protocol)]
    return (
        f"Published numbers are of Meta-World {version}, ours of {simulator} with its physics, "
        f"success by {success}{', matrix products are TF32' * tf32}. Orderings may be compared, "
        "and single numbers with that in mind. "
        f"Intervals: {bootstrap(scores, intervals=intervals)}."
    )


def bootstrap(scores: Scores, *, intervals: bool = True) -> str:
    """What the brackets next to published numbers are."""
    kind = f"{100 * scores.level:g} % percentile bootstrap over seeds"
    if intervals:
        return f"{kind}, as published"
    return f"{kind}, of ours; published are neither intervals nor the number of seeds"


def caption(scores: Scores, title: str, groups: Iterable[Group], studied: Set[str]) -> str:
    """Names every difference between the two protocols, and runs that are not compared.

    `groups` are the runs of the table's methods, `studied` the options that the table is about.
    """
    differences = paper_numbers.protocol_differences(scores.protocol, scores.window)
    text = f"Published / ours on {title}. {environment(scores)}"
    text += f" Protocol differs: {'; '.join(differences)}." if differences else ""
    return text + not_compared(scores, groups, studied)


def not_compared(scores: Scores, groups: Iterable[Group], studied: Set[str] = frozenset()) -> str:
    """The settings that no published number is of, as a sentence; empty without any."""
    others = [group for group in groups if not changed(scores.study, group) <= studied]
    found = list(dict.fromkeys(full_title(scores.study, group) for group in others))
    more = [f"{len(found) - MOST_NAMED} more"] if len(found) > MOST_NAMED else []
    named = "; ".join([*found[:MOST_NAMED], *more])
    return f" Not compared, since their options are others: {named}." if found else ""


def without_transfer(scores: Scores, families: tuple[str, ...]) -> str:
    """Why no method has forward transfer, as a sentence; empty where one has."""
    groups = [g for family in families for g in scores.groups(family)]
    ended = [g for g in groups if g.finished and not g.joint]
    if not ended or not all(scores.reference_of(g).missing(g.tasks) for g in ended):
        return ""
    tasks = [task for group in ended for task in group.tasks]
    reasons = dict.fromkeys(scores.reference_of(group).why(tasks) for group in ended)
    return f" Forward transfer has no number of ours: {'; '.join(reasons)}."


def comparisons(scores: Scores) -> Iterator[Entry]:
    """The paper's tables of all methods that our runs can fill."""
    for name, families, title in (
        ("cw3", ("cw3",), "CW3"),
        ("cw6", ("cw6",), "CW6"),
        ("cw10-cw20", ("cw10", "cw20"), "CW10 and CW20"),
    ):
        if present := tuple(family for family in families if scores.groups(family)):
            text = caption(scores, title, of_methods(scores, present, METHODS), frozenset())
            text += without_transfer(scores, present)
            blocks = (
                partial(stacked, scores, name)
                if len(families) == 1
                else partial(side_by_side, scores, present)
            )
            yield Entry(f"paper-{name}", "published", present, text, blocks)


def of_methods(scores: Scores, families: Iterable[str], methods: Container[str]) -> list[Group]:
    """Their groups, whatever the options."""
    return [
        group
        for family in families
        for group in scores.groups(family)
        if names.method_key(group.method) in methods
    ]


def with_counterpart(blocks: tuple[Block, ...]) -> tuple[Block, ...]:
    """The rows and columns in which at least one cell has a number of ours."""
    return tuple(block for block in map(_with_counterpart, blocks) if block.rows)


def _with_counterpart(block: Block) -> Block:
    has = [[has_number(cell) for cell in cells] for _, cells in block.rows]
    kept = [index for index in range(len(block.columns)) if any(row[index] for row in has)]
    rows = [row for row, known in zip(block.rows, has, strict=True) if any(known)]
    owners = [number for number, (_, count) in enumerate(block.spans) for _ in range(count)]
    spans = [(title, sum(owners[i] == n for i in kept)) for n, (title, _) in enumerate(block.spans)]
    return replace(
        block,
        columns=tuple(block.columns[index] for index in kept),
        rows=tuple((name, tuple(cells[index] for index in kept)) for name, cells in rows),
        mean=block.mean and rows[-1:] == list(block.rows[-1:]),
        spans=tuple((title, count) for title, count in spans if count),
    )


def has_number(cell: Cell) -> bool:
    return bool(cell.text) and not cell.text.endswith((paper_numbers.NO_NUMBER, "/ –"))


def overall(blocks: Iterable[Block]) -> str:
    """How many cells agree, differ or cannot tell, in one sentence."""
    texts = [cell.text for block in blocks for _, cells in block.rows for cell in cells]
    counts = {end: sum(text.endswith(end) for text in texts) for end in VERDICTS}
    counts[" differs"] -= counts["protocol differs"]
    if not (total := sum(counts.values())):
        return "No run here has a published counterpart."
    parts = ", ".join(f"{counts[end]} {words}" for end, words in VERDICTS.items())
    return f"Of {total} published cells with a number of ours: {parts}."


def compared(
    cell: Published,
    groups: list[Group],
    score: Score,
    error: float | None = None,
    *,
    differs: bool,
) -> Cell:
    """`0.84 / 0.86 [0.81, 0.90] agrees`: with the kind of interval that was published."""
    text = paper_numbers.verdict(score, cell, error)
    if differs and score.seeds:
        text = "protocol differs"
    low, high = score.estimate.ends("percentile")
    ours = "–" if np.isnan(score.value) else number(score.value)
    ours += "" if np.isnan(low) else f" [{number(low)}, {number(high)}]"
    origin = empty_cell(groups) if groups else Cell()
    return replace(origin, score=None, text=f"{number(cell.value)} / {ours} {text}")


def with_paper(
    scores: Scores, cell: Published, groups: list[Group], score: Score, error: float | None = None
) -> Cell:
    """A cell of the RECALL paper next to ours."""
    differences = paper_numbers.protocol_differences(scores.protocol, scores.window)
    return compared(cell, groups, score, error, differs=bool(differences))


def default_groups(scores: Scores, family: str, method: str) -> list[Group]:
    """A method's groups with default options: what the paper's columns are."""
    groups = of_methods(scores, (family,), (method,))
    return [group for group in groups if not changed(scores.study, group)]


def score_of(scores: Scores, groups: list[Group], metric: str, expected: int = 1) -> Score:
    """Of one setting on as many sequences as published."""
    if len(groups) != expected:
        return nothing("not run")
    if len({group.setup for group in groups}) > 1:
        return nothing("several settings")
    return scores.score(groups, metric)


def stacked(scores: Scores, family: str) -> tuple[Block, ...]:
    cells = {(c.row, c.column, c.metric): c for c in paper_numbers.published() if c.table == family}
    sequences = sorted({row for row, _, _ in cells if row != "mean"}, key=int)
    defaults = {method: default_groups(scores, family, method) for method in METHODS}
    blocks = []
    for metric in names.HEADLINE:
        table = []
        for row in (*sequences, "mean"):
            line = []
            for method in METHODS:
                groups, error = defaults[method], None
                if row != "mean":
                    groups = [g for g in groups if g.sequence == f"{family}-{row}"]
                else:
                    error = paper_numbers.mean_error(cells[s, method, metric] for s in sequences)
                count = 1 if row != "mean" else len(sequences)
                score = score_of(scores, groups, metric, count)
                line.append(with_paper(scores, cells[row, method, metric], groups, score, error))
            table.append((row, tuple(line)))
        columns = tuple(names.METHODS[method] for method in METHODS)
        corner, title = names.FAMILIES[family], names.METRICS[metric].title
        blocks.append(Block(title, corner, columns, tuple(table), mean=True))
    return tuple(blocks)


def side_by_side(scores: Scores, families: tuple[str, ...]) -> tuple[Block, ...]:
    cells = {
        (c.row, c.column, c.metric): c for c in paper_numbers.published() if c.table == "cw10-cw20"
    }
    table = []
    for method in METHODS:
        line = []
        for family in families:
            groups = default_groups(scores, family, method)
            for metric in names.HEADLINE:
                score = score_of(scores, groups, metric)
                line.append(with_paper(scores, cells[family, method, metric], groups, score))
        table.append((names.METHODS[method], tuple(line)))
    columns = tuple(names.METRICS[metric].short for metric in names.HEADLINE) * len(families)
    spans = tuple((names.FAMILIES[family], len(names.HEADLINE)) for family in families)
    return (Block("", "Method", columns, tuple(table), spans=spans),)
