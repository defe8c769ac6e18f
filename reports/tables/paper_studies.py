"""Published cells of the RECALL paper's studies of options and of pairs next to ours."""

from collections.abc import Iterator
from functools import partial

from cwbench.reports.analysis import names
from cwbench.reports.analysis.changes import UNSHARED, changed
from cwbench.reports.analysis.pairs import QUANTITIES, matrices, pair_ids, per_run
from cwbench.reports.analysis.scores import Score, Scores, align, nothing
from cwbench.reports.analysis.study import Group
from cwbench.reports.tables import paper_numbers
from cwbench.reports.tables.formats import number
from cwbench.reports.tables.model import Block, Cell, Entry
from cwbench.reports.tables.paper_comparison import (
    caption,
    of_methods,
    score_of,
    with_paper,
)
from cwbench.reports.tables.paper_numbers import Published

DEFAULT = frozenset[str]()
WEIGHT = frozenset({"lambda"})
MODE = frozenset({"replay-mode"})
OWN_NETWORKS = frozenset(UNSHARED.values())
RELEASE = frozenset({"recall-pairs"})  # the release's command for pairs


def comparisons(scores: Scores) -> Iterator[Entry]:
    """The studies that our runs can fill. Only what a study is about may be changed in a run."""
    if groups := on_first_sextet(scores):
        text = caption(scores, "the weight of distillation on CW6-1", groups, WEIGHT)
        yield Entry("paper-lambda", "published", ("cw6",), text, partial(weights, scores))
    if not scores.groups("pairs"):
        return
    memory = memory_pairs(scores)
    for name, title, groups, studied, blocks in (
        ("pairs", "the pair matrices", matrix_pairs(scores), RELEASE, pair_averages),
        ("replay", "offline and online replay, first task", memory, MODE, replay),
        (
            "sharing",
            "shared and unshared networks on pair (5,0)",
            [group for group in memory if group.sequence == "pair-5-0"],
            OWN_NETWORKS,
            sharing,
        ),
    ):
        text = caption(scores, title, groups, studied)
        yield Entry(f"paper-{name}", "published", ("pairs",), text, partial(blocks, scores))


def on_first_sextet(scores: Scores) -> list[Group]:
    groups = of_methods(scores, ("cw6",), ("recall",))
    return [group for group in groups if group.sequence == "cw6-1"]


def matrix_pairs(scores: Scores) -> list[Group]:
    """Of Continual World's ten tasks, by the methods that the paper has matrices of."""
    groups = of_methods(scores, ("pairs",), ("perfect_memory", "recall"))
    return [group for group in groups if not names.pairs_of(group.sequence)]


def memory_pairs(scores: Scores) -> list[Group]:
    return [g for g in matrix_pairs(scores) if names.method_key(g.method) == "perfect_memory"]


def option(scores: Scores, group: Group, part: str, key: str) -> object:
    """An option from a group's record."""
    return (scores.study.record(group).get(part) or {}).get(key)


def weights(scores: Scores) -> tuple[Block, ...]:
    """RECALL with other weights of distillation."""
    groups = [g for g in on_first_sextet(scores) if changed(scores.study, g) <= WEIGHT]
    table: dict[str, list[Cell]] = {}
    for cell in (cell for cell in paper_numbers.published() if cell.table == "lambda"):
        same = [
            g for g in groups if option(scores, g, "method_options", "lambda_") == float(cell.row)
        ]
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


def replay(scores: Scores) -> tuple[Block, ...]:
    """Perfect Memory with offline and online replay."""
    memory = [(group, changed(scores.study, group)) for group in memory_pairs(scores)]
    table: dict[str, list[Cell]] = {}
    for cell in (cell for cell in paper_numbers.published() if cell.table == "replay"):
        pair = tuple(map(int, cell.row.strip("()").split(",")))
        wanted = MODE if cell.column == "online" else DEFAULT
        same = [g for g, found in memory if pair_ids(g.sequence) == pair and found == wanted]
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
    """Whether each task has its own whole actor or critic."""
    own = option(scores, group, "network", f"{part}_head_layers")
    return own is not None and own == option(scores, group, "network", "layers")


def sharing(scores: Scores) -> tuple[Block, ...]:
    """Perfect Memory on pair (5,0) with networks shared or not."""
    pairs = [group for group in memory_pairs(scores) if group.sequence == "pair-5-0"]
    table: dict[str, list[Cell]] = {}
    for cell in (cell for cell in paper_numbers.published() if cell.table == "sharing"):
        own = [part for part in UNSHARED if f"unshared {part}" in cell.row]
        same = [
            group
            for group in pairs
            if changed(scores.study, group) == {UNSHARED[part] for part in own}
            and all(unshared(scores, group, part) for part in own)
        ]
        table.setdefault(cell.row, []).append(
            with_paper(scores, cell, same, pair_score(scores, same, cell.column))
        )
    rows = tuple((row, tuple(cells)) for row, cells in table.items())
    return (Block("", "Network setting", ("First task", "Second task"), rows),)


ZERO, LOW = "second task at zero", "second task above 0, below 0.5"
PAIR_COUNTS = {  # column -> of the paper's numbers, and the `PairMatrices.counts` that add up to it
    "Second = 0": ("second_task_success_eq_0_count", (ZERO,)),
    "Second in (0, 0.5)": ("second_task_success_gt_0_lt_0.5_count", (LOW,)),
    "Second < 0.5": ("second_task_success_lt_0.5_count", (ZERO, LOW)),
    "Forgetting > 0.1": ("first_task_forgetting_gt_0.1_count", ("forgetting above 0.1",)),
}


def pair_averages(scores: Scores) -> tuple[Block, ...]:
    """Averages and counts of the matrices; the paper gives no interval for them.

    Its RECALL is also compared with the release's command for pairs, where that was run.
    """
    groups = [(group, changed(scores.study, group)) for group in matrix_pairs(scores)]
    rows = []
    for method, studied in (("perfect_memory", DEFAULT), ("recall", DEFAULT), ("recall", RELEASE)):
        same = [
            g for g, found in groups if (names.method_key(g.method), found) == (method, studied)
        ]
        if same or not studied:
            title = same[0].title if same else names.METHODS[method]
            rows.append((title, tuple(_pair_cells(scores, method, same))))
    columns = ("First task", "Second task", "Forgetting", *PAIR_COUNTS, "Largest forgetting")
    return (Block("", "Method", columns, tuple(rows)),)


def _pair_cells(scores: Scores, method: str, groups: list[Group]) -> Iterator[Cell]:
    """Published and ours; ours only with all hundred pairs of one setting."""
    quoted = paper_numbers.pair_summary()
    whole = len(groups) == 100 and len({group.setup for group in groups}) == 1
    found = matrices(scores, groups) if whole else None
    for quantity in QUANTITIES:
        forgetting = quantity == "forgetting"
        key = "first_task_forgetting" if forgetting else f"{quantity}_task_performance"
        metric = "forgetting" if forgetting else "performance"
        score = found.averages[quantity] if found else nothing("not run")
        cell = Published("pairs", method, quantity, metric, quoted[method, f"{key}_mean"])
        # The paper gives no interval here: assume that its error equals ours.
        error = paper_numbers.with_rounding(score.estimate.error)
        yield with_paper(scores, cell, groups, score, error)
    ended = found if found and found.pairs == 100 else None
    for key, parts in PAIR_COUNTS.values():
        theirs = quoted.get((method, key))
        ours = str(sum(ended.counts()[part] for part in parts)) if ended else "–"
        yield Cell(text=f"{'–' if theirs is None else int(theirs)} / {ours}")
    theirs = quoted.get((method, "first_task_forgetting_max"))
    ours = number(float(ended.values["forgetting"].max())) if ended else "–"
    yield Cell(text=f"{'–' if theirs is None else number(theirs)} / {ours}")
