"""Cells of the page's tables, and that text from results stays text."""

import numpy as np

from cwbench.reports.analysis.intervals import INTERVALS, Estimate
from cwbench.reports.analysis.scores import Score, nothing
from cwbench.reports.page.tables import block_table, link, runs_anchor, table_cell
from cwbench.reports.tables.model import Block, Cell

HOSTILE = "<img src=x>"


def score(value: float, low: float = np.nan, high: float = np.nan, seeds: int = 5) -> Score:
    return Score(Estimate(value, low, high, low, high, low, high), seeds)


def test_a_number_has_its_interval_and_the_seeds_that_have_ended() -> None:
    cell = Cell(score(0.5, 0.4, 0.6, seeds=3), bold=frozenset(INTERVALS), asked=5)
    shown = table_cell(cell)
    assert shown.startswith('<td class="best"') and 'data-v="0.5"' in shown
    assert "0.50 <small>[0.40, 0.60]</small> <small>3/5</small></td>" in shown


def test_a_number_leads_to_its_seeds_and_a_mean_to_its_setting() -> None:
    assert runs_anchor(("cw3-1-ab12",)) == "g-cw3-1-ab12"
    assert runs_anchor(("cw3-1-ab12", "cw3-2-ab12")) == "s-ab12"


def test_what_is_unfinished_shows_its_progress() -> None:
    cell = Cell(nothing("no finished run"), keys=("k-1",), progress=0.25, asked=5)
    shown = table_cell(cell)
    assert 'class="part"' in shown and "--p:25%" in shown and ">25 %</a>" in shown


def test_a_text_is_sorted_by_the_amount_it_is_about() -> None:
    assert 'data-v="7200">2.00 h<' in table_cell(Cell(text="2.00 h", amount=7200))
    assert 'data-v="Infinity">never (0/3)<' in table_cell(Cell(text="never (0/3)", amount=np.inf))
    assert "data-v" not in table_cell(Cell(text="2 of 3"))


def test_text_is_escaped() -> None:
    cells = (Cell(text=HOSTILE), Cell(text=HOSTILE, keys=(HOSTILE,)))
    block = Block(HOSTILE, HOSTILE, (HOSTILE, "b"), ((HOSTILE, cells),))
    assert "<img" not in block_table(block, HOSTILE) + link(HOSTILE, HOSTILE)


def test_the_mean_stays_below_when_rows_are_sorted() -> None:
    rows = (("1", (Cell(text="a"),)), ("mean", (Cell(text="b"),)))
    shown = block_table(Block("", "", ("x",), rows, mean=True), "t")
    assert shown.index("</tbody>") < shown.index("mean") < shown.index("</tfoot>")


def test_no_line_ends_inside_an_interval() -> None:
    shown = table_cell(Cell(text="0.84 / 0.86 [0.81, 0.90] agrees"))
    words = shown.split(">")[1].split("<")[0].split(" ")
    assert words == ["0.84\xa0/\xa00.86", "[0.81,\xa00.90]", "agrees"]
