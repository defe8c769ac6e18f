"""Which cells a table has, which are bold, and how they are written down to the byte."""

import csv
from importlib.resources import files

import numpy as np
import pytest

from cwbench.reports.analysis.intervals import INTERVALS, Estimate
from cwbench.reports.analysis.scores import Score, nothing
from cwbench.reports.tables import formats
from cwbench.reports.tables.model import Cell, mark_bold


def cell(value: float, low: float, high: float, *, bold: bool = False, seeds: int = 5) -> Cell:
    ends = (low, high, low - 0.1, high + 0.1, low, high)
    kinds = frozenset(INTERVALS if bold else ())
    return Cell(Score(Estimate(value, *ends), seeds), bold=kinds, asked=5)


def published(name: str) -> list[dict[str, str]]:
    text = (files("cwbench.reports") / "data" / name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def test_bold_rule_against_the_paper_marks():
    """222 of 228: no simple rule gives all of them."""
    marks = {
        (row["table"], row["sequence"], row["method"], row["metric"]): row["bold"] == "1"
        for row in published("bold_marks.csv")
    }
    cells: dict[tuple[str, str, str], dict[str, Cell]] = {}
    for file, table in (("cw3.csv", "CW3"), ("cw6.csv", "CW6"), ("cw10_cw20.csv", "")):
        for row in published(file):
            place = (table or row["sequence"], row["sequence"], row["metric"])
            ends = [float(row[key]) if row[key] else np.nan for key in ("ci_low", "ci_high")]
            cells.setdefault(place, {})[row["method"]] = cell(float(row["mean"]), *ends)
    right = total = 0
    for (table, sequence, metric), by_method in cells.items():
        if sequence == "mean" or (metric == "forgetting" and table in ("CW3", "CW6")):
            continue  # without intervals, or marked by best value only
        marked = mark_bold(list(by_method.values()), -1 if metric == "forgetting" else 1)
        for method, got in zip(by_method, marked, strict=True):
            right += ("percentile" in got.bold) == marks[table, sequence, method, metric]
            total += 1
    assert (right, total) == (222, 228)


def test_bold_follows_the_interval_that_is_shown():
    """0.88 reaches 0.93 by its t interval [0.76, 1.00] and not by [0.84, 0.92]."""
    second = Cell(Score(Estimate(0.88, 0.77, 0.99, 0.76, 1.0, 0.84, 0.92), 3))
    best = Cell(Score(Estimate(0.93, 0.92, 0.94, 0.91, 0.95, 0.92, 0.94), 3))
    marked, _ = mark_bold([second, best], 1)
    assert marked.bold == {"bootstrap", "t"}
    assert formats.latex_cell(marked, "t").startswith(r"\bm")
    assert not formats.latex_cell(marked, "percentile").startswith(r"\bm")


def test_one_value_alone_is_not_best():
    alone = [cell(0.9, 0.8, 1.0), Cell(nothing("no finished run"))]
    assert [bool(c.bold) for c in mark_bold(alone, 1)] == [False, False]


@pytest.mark.parametrize("other", [(0.1, np.nan, np.nan), (0.8, 0.5, 1.0)])
def test_nothing_is_bold_if_the_best_value_has_no_interval(other: tuple[float, float, float]):
    cells = [cell(0.9, np.nan, np.nan), cell(*other)]
    assert [bool(c.bold) for c in mark_bold(cells, 1)] == [False, False]


def test_nothing_is_bold_beside_a_value_without_interval():
    """0.5 after one seed may be the best as well as 0.8 may."""
    cells = [cell(0.9, 0.7, 1.0), cell(0.8, 0.6, 0.9), cell(0.5, np.nan, np.nan)]
    assert [bool(c.bold) for c in mark_bold(cells, 1)] == [False, False, False]
    assert [bool(c.bold) for c in mark_bold(cells[:2], 1)] == [True, True]


def test_equal_means_are_both_bold_whatever_their_rounding():
    means = [np.mean([0.1, 0.2, 0.3]), np.mean([0.3, 0.2, 0.1])]
    assert means[0] != means[1]
    cells = mark_bold([cell(float(mean), float(mean), float(mean)) for mean in means], 1)
    assert all("percentile" in one.bold for one in cells)
