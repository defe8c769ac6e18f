"""Every row and column of a LaTeX table is on exactly one page, and fits there."""

from dataclasses import replace
from functools import partial

import pytest

from cwbench.reports.analysis.intervals import Estimate
from cwbench.reports.analysis.scores import Score
from cwbench.reports.tables import formats, pages
from cwbench.reports.tables.model import Block, Cell, Table
from cwbench.reports.tables.verify import READERS

SCORED = Cell(Score(Estimate(-0.5, *[-0.75, -0.25] * 3), 5), asked=5)
write = partial(formats.latex_cell, interval="t")


def block(rows: int, columns: int, cell: Cell = SCORED, title: str = "Forgetting") -> Block:
    names = tuple(f"method {column}" for column in range(columns))
    return Block(
        title, "Task", names, tuple((f"row {row}", (cell,) * columns) for row in range(rows))
    )


def test_a_block_that_is_longer_than_a_page_is_divided():
    long = replace(block(100, 3), mean=True)
    parts = [part for [part] in pages.paged([long], write, 3)]
    assert [len(part.rows) for part in parts] == [33, 33, 34]
    assert [row for part in parts for row in part.rows] == [*long.rows]
    assert {(part.title, part.columns) for part in parts} == {(long.title, long.columns)}
    assert [part.mean for part in parts] == [False, False, True]


def test_rows_of_two_lines_fill_a_page_twice_as_fast():
    cell = Cell(text="0.30 / 0.33 [0.31, 0.37] agrees")
    lengths = [len(part.rows) for [part] in pages.paged([block(42, 2, cell)], write, 3)]
    assert lengths == [21, 21]


def test_columns_of_stacked_blocks_continue_together():
    stacked = [block(2, 20), block(2, 20, title="Forward Transfer")]
    found = pages.paged(stacked, write, 3)
    assert [[part.title for part in page] for page in found] == [
        ["Forgetting", "Forward Transfer"]
    ] * 4
    assert [len(page[0].columns) for page in found] == [5, 5, 5, 5]
    assert sum((page[1].columns for page in found), ()) == stacked[1].columns
    cells = [page[1].rows[0][1] for page in found]
    assert sum(cells, ()) == stacked[1].rows[0][1]


def test_six_methods_stay_side_by_side():
    assert len(pages.paged([block(9, 6)], write, 3)) == 1


def test_titles_over_columns_are_divided_with_them():
    wide = replace(block(2, 10), spans=(("CW10", 6), ("CW20", 4)))
    spans = [page[0].spans for page in pages.paged([wide], write, 3)]
    assert spans == [(("CW10", 5),), (("CW10", 1), ("CW20", 4))]


def test_a_name_that_is_wider_than_the_page_leaves_columns_together():
    named = replace(block(1, 3), rows=(("x" * 200, (SCORED,) * 3),))
    assert len(pages.paged([named], write, 3)) == 1


def test_where_a_column_is_does_not_matter_to_verify(monkeypatch: pytest.MonkeyPatch):
    columns = ("Ave. Perf.", "Forgetting") * 6
    scores = [replace(SCORED, asked=asked) for asked in range(12)]
    wide = Block("", "Method", columns, (("EWC", tuple(scores)),))
    table = Table("t", "Wide.", (wide,))
    divided = formats.latex(table)
    monkeypatch.setattr(pages, "PAGE_WIDTH", 10_000)
    whole = formats.latex(table)
    assert (divided.count("tabular}{"), whole.count("tabular}{")) == (3, 1)
    read = READERS["latex"]
    assert read(divided) == read(whole) and len(read(whole)) == 12
