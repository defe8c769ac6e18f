"""Tables with each published cell next to ours and a verdict: `--compare paper`."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from cwbench.reports.analysis import names
from cwbench.reports.analysis.pairs import QUANTITIES, matrices, pair_ids, per_run
from cwbench.reports.analysis.provenance import versions_of
from cwbench.reports.analysis.scores import Score, Scores, align, nothing
from cwbench.reports.analysis.study import SUCCESS_TITLES, Group
from cwbench.reports.tables import paper_numbers
from cwbench.reports.tables.formats import number
from cwbench.reports.tables.model import Block, Cell, empty_cell
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
WITH_TRANSFER = ("cw3", "cw6", "cw10-cw20")  # tables of the paper
TITLES = {
    "cw3": "CW3",
    "cw6": "CW6",
    "cw10-cw20": "CW10 and CW20",
    "lambda": "the weight of distillation on CW6-1",
    "replay": "offline and online replay, first task",
    "sharing": "shared and unshared networks on pair (5,0)",
    "pairs": "the pair matrices",
}


@dataclass(frozen=True)
class Comparison:
    """How one table of published numbers next to ours is made."""

    name: str
    families: tuple[str, ...]
    caption: str
    blocks: Callable[[], tuple[Block, ...]]


def environment(scores: Scores) -> str:
    """What differs from the environment of the published numbers, whatever the protocol."""
    records = scores.study.segments.values()
    versions = versions_of(records)
    simulator = ", ".join(f"{k} {versions.get(k, '?')}" for k in ("metaworld", "mujoco"))
    tf32 = any((record.get("device") or {}).get("tf32") for record in records)
    success = SUCCESS_TITLES[scores.study.success_of(scores.protocol)]
    return (
        f"Published numbers are of Meta-World V1, ours of {simulator} with its physics, success by "
        f"{success}{', matrix products are TF32' * tf32}. Orderings may be compared, and single "
        "numbers with that in mind. Intervals: "
        f"{100 * scores.level:g} % percentile bootstrap over seeds, as published."
    )


def caption(scores: Scores, table: str, families: tuple[str, ...]) -> str:
    """Names every difference between the two protocols, and what has no number of ours."""
    differences = paper_numbers.protocol_differences(scores.protocol, scores.window)
    text = f"Published / ours on {TITLES[table]}. {environment(scores)}"
    text += f" Protocol differs: {'; '.join(differences)}." if differences else ""
    return text + (without_transfer(scores, families) if table in WITH_TRANSFER else "")


def without_transfer(scores: Scores, families: tuple[str, ...]) -> str:
    """Why no method has forward transfer, as a sentence; empty where one has."""
    groups = [g for family in families for g in scores.groups(family)]
    ended = [g for g in groups if g.finished and not g.joint]
    if not ended or not all(scores.reference_of(g).missing(g.tasks) for g in ended):
        return ""
    tasks = [task for group in ended for task in group.tasks]
    reasons = dict.fromkeys(scores.reference_of(group).why(tasks) for group in ended)
    return f" Forward transfer has no number of ours: {'; '.join(reasons)}."


def comparisons(scores: Scores) -> Iterator[Comparison]:
    """The comparisons with the RECALL paper that our runs can fill."""
    for name, families, blocks in _makers(scores):
        yield Comparison(f"paper-{name}", families, caption(scores, name, families), blocks)


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


def _makers(
    scores: Scores,
) -> Iterator[tuple[str, tuple[str, ...], Callable[[], tuple[Block, ...]]]]:
    """Name, families and maker of each comparison our runs can fill."""
    for family in ("cw3", "cw6"):
        if scores.groups(family):
            yield family, (family,), partial(stacked, scores, family)
    if long := tuple(family for family in ("cw10", "cw20") if scores.groups(family)):
        yield "cw10-cw20", long, partial(side_by_side, scores, long)
    if any(
        g.sequence == "cw6-1" and names.method_key(g.method) == "recall"
        for g in scores.groups("cw6")
    ):
        yield "lambda", ("cw6",), partial(weights, scores)
    if scores.groups("pairs"):
        yield "pairs", ("pairs",), partial(pair_averages, scores)
        yield "replay", ("pairs",), partial(replay, scores)
        yield "sharing", ("pairs",), partial(sharing, scores)


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


def default_groups(scores: Scores, families: tuple[str, ...], method: str) -> list[Group]:
    """A method's groups with default options: what the paper's columns are."""
    return [
        group
        for family in families
        for group in scores.groups(family)
        if names.method_key(group.method) == method and group.label == group.method
    ]


def score_of(scores: Scores, groups: list[Group], metric: str, expected: int = 1) -> Score:
    if len(groups) != expected:
        return nothing("not run")
    return scores.score(groups, metric)


def stacked(scores: Scores, family: str) -> tuple[Block, ...]:
    cells = {(c.row, c.column, c.metric): c for c in paper_numbers.published() if c.table == family}
    sequences = sorted({row for row, _, _ in cells if row != "mean"}, key=int)
    blocks = []
    for metric in names.HEADLINE:
        table = []
        for row in (*sequences, "mean"):
            line = []
            for method in METHODS:
                groups = default_groups(scores, (family,), method)
                error = None
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
            groups = default_groups(scores, (family,), method)
            for metric in names.HEADLINE:
                score = score_of(scores, groups, metric)
                line.append(with_paper(scores, cells[family, method, metric], groups, score))
        table.append((names.METHODS[method], tuple(line)))
    columns = tuple(names.METRICS[metric].short for metric in names.HEADLINE) * len(families)
    spans = tuple((names.FAMILIES[family], len(names.HEADLINE)) for family in families)
    return (Block("", "Method", columns, tuple(table), spans=spans),)


def option(scores: Scores, group: Group, part: str, key: str) -> object:
    """An option from the record of a group's first segment on disk."""
    ids = [key for run in group.runs for key in run.segments]
    record = next((scores.study.segments[i] for i in ids if i in scores.study.segments), {})
    return (record.get(part) or {}).get(key)


def weights(scores: Scores) -> tuple[Block, ...]:
    """RECALL with other weights of distillation."""
    groups = [
        group
        for group in scores.groups("cw6")
        if group.sequence == "cw6-1" and names.method_key(group.method) == "recall"
    ]
    table: dict[str, list[Cell]] = {}
    for cell in (cell for cell in paper_numbers.published() if cell.table == "lambda"):
        same = [
            g for g in groups if option(scores, g, "method_options", "lambda_") == float(cell.row)
        ][:1]
        score = score_of(scores, same, cell.metric)
        table.setdefault(cell.row, []).append(with_paper(scores, cell, same, score))
    columns = tuple(names.METRICS[metric].short for metric in names.HEADLINE)
    return (Block("", "lambda", columns, tuple((k, tuple(v)) for k, v in table.items())),)


def pair_score(scores: Scores, groups: list[Group], quantity: str) -> Score:
    """First or second task or forgetting of one pair."""
    if len(groups) != 1:
        return nothing("not run")
    values, seeds = align(groups, [per_run(groups[0], scores.window)[quantity][None]])
    if not seeds:
        return nothing("no finished run")
    return scores.mean(values, seeds)


def memory_pairs(scores: Scores) -> list[Group]:
    return [
        group
        for group in scores.groups("pairs")
        if names.method_key(group.method) == "perfect_memory" and not names.pairs_of(group.sequence)
    ]


def replay(scores: Scores) -> tuple[Block, ...]:
    """Perfect Memory with offline and online replay."""
    table: dict[str, list[Cell]] = {}
    for cell in (cell for cell in paper_numbers.published() if cell.table == "replay"):
        same = [
            group
            for group in memory_pairs(scores)
            if pair_ids(group.sequence) == tuple(map(int, cell.row.strip("()").split(",")))
            and (option(scores, group, "method_options", "replay_mode") or "offline") == cell.column
            and not unshared(scores, group, "actor")
            and not unshared(scores, group, "critic")
        ][:1]
        score = pair_score(scores, same, "first" if cell.metric == "performance" else "forgetting")
        table.setdefault(cell.row, []).append(with_paper(scores, cell, same, score))
    return (
        Block(
            "",
            "Pair",
            ("Performance", "Forgetting") * 2,
            tuple((row, tuple(cells)) for row, cells in table.items()),
            spans=(("Offline", 2), ("Online", 2)),
        ),
    )


def unshared(scores: Scores, group: Group, part: str) -> bool:
    """Whether each task has a whole actor or critic of its own."""
    own = option(scores, group, "network", f"{part}_head_layers")
    return own is not None and own == option(scores, group, "network", "layers")


def sharing(scores: Scores) -> tuple[Block, ...]:
    """Perfect Memory on pair (5,0) with networks shared or not."""
    pairs = [group for group in memory_pairs(scores) if group.sequence == "pair-5-0"]
    table: dict[str, list[Cell]] = {}
    for cell in (cell for cell in paper_numbers.published() if cell.table == "sharing"):
        same = [
            group
            for group in pairs
            if cell.row == f"{'un' * unshared(scores, group, 'actor')}shared actor, "
            f"{'un' * unshared(scores, group, 'critic')}shared critic"
        ][:1]
        table.setdefault(cell.row, []).append(
            with_paper(scores, cell, same, pair_score(scores, same, cell.column))
        )
    rows = tuple((row, tuple(cells)) for row, cells in table.items())
    return (Block("", "Network setting", ("First task", "Second task"), rows),)


PAIR_COUNTS = {  # of the paper's numbers -> of `PairMatrices.counts`
    "second_task_success_eq_0_count": "second task at zero",
    "second_task_success_gt_0_lt_0.5_count": "second task above 0, below 0.5",
    "first_task_forgetting_gt_0.1_count": "forgetting above 0.1",
}


def pair_averages(scores: Scores) -> tuple[Block, ...]:
    """Averages and counts of the matrices; the paper gives no interval for them."""
    rows = [
        (names.METHODS[method], tuple(_pair_cells(scores, method)))
        for method in ("perfect_memory", "recall")
    ]
    columns = ("First task", "Second task", "Forgetting", "Second = 0", "Second in (0, 0.5)")
    return (Block("", "Method", (*columns, "Forgetting > 0.1"), tuple(rows)),)


def _pair_cells(scores: Scores, method: str) -> Iterator[Cell]:
    """Published and ours; ours only with all hundred pairs."""
    quoted, pairs = paper_numbers.pair_summary(), default_groups(scores, ("pairs",), method)
    groups = [group for group in pairs if not names.pairs_of(group.sequence)]
    found = matrices(scores, groups) if groups else None
    for quantity in QUANTITIES:
        forgetting = quantity == "forgetting"
        key = "first_task_forgetting" if forgetting else f"{quantity}_task_performance"
        metric = "forgetting" if forgetting else "performance"
        score = found.averages[quantity] if found and len(groups) == 100 else nothing("not run")
        cell = Published("pairs", method, quantity, metric, quoted[method, f"{key}_mean"])
        # The paper gives no interval here: assume that its error equals ours.
        error = paper_numbers.with_rounding(score.estimate.error)
        yield with_paper(scores, cell, groups, score, error)
    for key, name in PAIR_COUNTS.items():
        theirs = quoted.get((method, key))
        ours = str(found.counts()[name]) if found and found.pairs == 100 else "–"
        yield Cell(text=f"{'–' if theirs is None else int(theirs)} / {ours}")
