"""Published tables of other papers next to our runs: `--compare continual-world|clonex|cka-rl`."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial

from cwbench.reports.analysis import names
from cwbench.reports.analysis.scores import Scores
from cwbench.reports.tables import paper_numbers
from cwbench.reports.tables.model import Block, Cell, Entry
from cwbench.reports.tables.paper_comparison import (
    SUCCESS,
    compared,
    default_groups,
    environment,
    not_compared,
    of_methods,
    score_of,
    without_transfer,
)
from cwbench.reports.tables.paper_numbers import Published

OURS = {"finetuning_copies": "finetuning_n"}  # published methods that have another name here


@dataclass(frozen=True)
class Paper:
    """Where a paper's numbers are, and the rules they were measured under."""

    title: str
    file: str
    sources: tuple[str, ...]
    seeds: int = paper_numbers.SEEDS
    window: int = paper_numbers.WINDOW
    success: str = SUCCESS  # how it counts an episode as solved
    rules: str = ""  # how its protocol differs from every protocol here
    metaworld: str = "V1"
    intervals: bool = True  # published, and with them the number of seeds


PAPERS = {
    "continual-world": Paper(
        "Continual World (NeurIPS 2021)",
        "other_published",
        ("continual_world_2021_authors_csv",),
        seeds=20,
        window=5,
    ),
    "clonex": Paper(
        "ClonEx-SAC (NeurIPS 2022; five seeds are assumed)",
        "other_published",
        ("clonex_2022_table6_transcribed", "clonex_2022_abstract"),
        window=5,
    ),
    "cka-rl": Paper(
        "CKA-RL (2025)",
        "published_2024_2026",
        ("cka_rl_2025_table1",),
        success="v3-last",
        metaworld="v2",
        intervals=False,
        rules="v2 rewards, 39 observations, 500 steps an episode, performance is the training "
        "success of each task's own window, transfer is a difference of areas",
    ),
}


@cache
def published(name: str) -> dict[tuple[str, str, str], Published]:
    """(family, method, metric) -> cell. Later sources of a paper do not replace earlier ones."""
    paper = PAPERS[name]
    found: dict[tuple[str, str, str], Published] = {}
    for source in paper.sources:
        for row in paper_numbers.rows(paper.file):
            family = row["sequence"].lower().split("-")[0]
            if row["source"] == source and family in ("cw10", "cw20"):
                method = OURS.get(row["method"], row["method"])
                cell = paper_numbers.cell(name, family, method, row, seeds=paper.seeds)
                found.setdefault((family, method, row["metric"]), cell)
    return found


def comparisons(scores: Scores, name: str) -> Iterator[Entry]:
    """The one table of a paper, if runs on its sequences exist."""
    cells = published(name)
    present = [f for f in ("cw10", "cw20") if scores.groups(f)]
    families = tuple(f for f in present if any(key[0] == f for key in cells))
    if families:
        blocks = partial(side_by_side, scores, name, families)
        yield Entry(name, "published", families, caption(scores, name, families), blocks)


def caption(scores: Scores, name: str, families: tuple[str, ...]) -> str:
    paper = PAPERS[name]
    about = environment(scores, paper.metaworld, intervals=paper.intervals)
    text = f"Published / ours: {paper.title}. {about}"
    differences = differences_of(scores, name)
    text += f" Protocol differs: {'; '.join(differences)}." if differences else ""
    methods = {method for _, method, _ in published(name)}
    text += not_compared(scores, of_methods(scores, families, methods))
    transfer = any(metric == "forward_transfer" for _, _, metric in published(name))
    return text + (without_transfer(scores, families) if transfer else "")


def differences_of(scores: Scores, name: str) -> list[str]:
    paper = PAPERS[name]
    if paper.rules:
        return [f"its own is {paper.rules}"]
    return paper_numbers.protocol_differences(scores.protocol, scores.window, paper.window)


def side_by_side(scores: Scores, name: str, families: tuple[str, ...]) -> tuple[Block, ...]:
    """A row per published method, the paper's metrics for each sequence."""
    cells, differs = published(name), bool(differences_of(scores, name))
    metrics = [m for m in names.HEADLINE if any(key[2] == m for key in cells)]
    rows = []
    for method in dict.fromkeys(method for _, method, _ in cells):
        line = []
        for family in families:
            groups = default_groups(scores, family, method)
            for metric in metrics:
                cell = cells.get((family, method, metric))
                score = score_of(scores, groups, metric)
                line.append(compared(cell, groups, score, differs=differs) if cell else Cell())
        rows.append((names.method_title(method), tuple(line)))
    columns = tuple(names.METRICS[metric].short for metric in metrics) * len(families)
    spans = tuple((names.FAMILIES[family], len(metrics)) for family in families)
    return (Block("", "Method", columns, tuple(rows), spans=spans),)
