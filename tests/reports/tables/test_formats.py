"""A table in LaTeX, Markdown and CSV, down to the byte; names stay names."""

import csv
import io
from dataclasses import replace
from pathlib import Path

import pytest
from sample_results import small, write_results

from cwbench.reports import build
from cwbench.reports.analysis.intervals import INTERVALS, Estimate
from cwbench.reports.analysis.scores import Score, nothing
from cwbench.reports.analysis.study import Study
from cwbench.reports.page.tables import table_cell
from cwbench.reports.tables import formats
from cwbench.reports.tables.model import Block, Cell, Table

GOLDEN = Path(__file__).parent / "golden"


def cell(value: float, low: float, high: float, *, bold: bool = False, seeds: int = 5) -> Cell:
    ends = (low, high, low - 0.1, high + 0.1, low, high)
    kinds = frozenset(INTERVALS if bold else ())
    return Cell(Score(Estimate(value, *ends), seeds), bold=kinds, asked=5)


def sample_table() -> Table:
    rows = (
        ("1", (cell(0.3, 0.29, 0.31), cell(0.9, 0.88, 0.92, bold=True))),
        ("2", (cell(-0.001, -0.2, 0.1), Cell(nothing("no finished run"), asked=5))),
        ("mean", (cell(0.15, 0.1, 0.2, seeds=3), Cell(nothing("no finished run"), asked=5))),
    )
    lost = (("1", (cell(0.1, 0.0, 0.2), Cell(text="5 of 5 & <more>"))),)
    return Table(
        "cw3",
        "Numbers at 100% & more.",
        (
            Block("Average Performance", "CW3", ("Fine-tuning", "RE_CALL"), rows, mean=True),
            Block("Forgetting", "CW3", ("Fine-tuning", "RE_CALL"), lost),
        ),
        {"protocol": "Protocol paper", "hash": "hash 0123"},
    )


@pytest.mark.parametrize("format", formats.FORMATS)
def test_layout_byte_for_byte(format: str):
    write, suffix = formats.FORMATS[format]
    assert write(sample_table(), "bootstrap") == (GOLDEN / f"cw3{suffix}").read_text()


def test_the_caption_says_how_a_missing_number_looks(tmp_path: Path):
    """A dash in LaTeX, the reason in parentheses in Markdown."""
    settings = [small("ewc"), small("recall")]
    write_results(tmp_path, sequence_names=["cw3-1"], settings=settings, seeds=[0])
    [(_, _, table)] = build.tables_of(build.read(tmp_path), "cw3")
    latex, markdown = formats.latex(table), formats.markdown(table)
    assert "A dash means that no number exists; a fraction" in latex and " -- " in latex
    assert "Parentheses say why no number exists; a fraction" in markdown
    assert "(no single-task reference" in markdown and "dash" not in markdown


def test_side_by_side_layout_byte_for_byte():
    columns = ("Ave. Perf.", "Forgetting") * 2
    cells = tuple(cell(value, value - 0.1, value + 0.1) for value in (0.1, 0.2, 0.3, 0.4))
    block = Block("", "Method", columns, (("EWC", cells),), spans=(("CW10", 2), ("CW20", 2)))
    table = Table("cw10-cw20", "Long.", (block,), {"protocol": "Protocol paper"})
    assert formats.latex(table, "t") == (GOLDEN / "cw10-cw20.tex").read_text()
    assert "| Method | CW10 Ave. Perf. | CW10 Forgetting | CW20 Ave. Perf." in formats.markdown(
        table
    )


def test_every_table_has_the_same_cells_in_every_format(study: Study):
    from cwbench.reports.tables.verify import READERS, sign

    for name, scores, table in build.tables_of(study):
        cells = sum(len(row) for block in table.blocks for _, row in block.rows)
        for format in formats.FORMATS:
            assert len(READERS[format](sign(scores, table, format, "t"))) == cells, (name, format)


def test_what_rounding_leaves_of_zero_is_zero_in_csv() -> None:
    cell = Cell(Score(Estimate(1.04e-17, *[-1e-17, 1e-6] * 3), 3), asked=3)
    text = formats.csv_text(Table("t", "", (Block("", "", ("a",), (("row", (cell,)),)),)))
    assert text.splitlines()[1].startswith(",row,a,0,0,1e-06,")


SIGNS = ["=", "+", "-", "@"]


def named(name: str) -> Table:
    """A table that has a name in every place where names of others can be."""
    number = Cell(Score(Estimate(-0.5, *[-0.7, -0.3] * 3), 3), asked=3)
    rows = ((name, (number, Cell(text=name))),)
    block = Block(name, "", (name, "text"), rows)
    return Table("t", name, (block,), footer={"runs": name})


@pytest.mark.parametrize("sign", SIGNS)
@pytest.mark.parametrize("before", ["", "\t", "\r", "\n "])
def test_no_name_becomes_a_formula(sign: str, before: str) -> None:
    name = f"{sign}HYPERLINK(A1)"
    text = formats.csv_text(named(before + name))
    *rows, footer = csv.reader(io.StringIO(text, newline=""))
    cells = [cell for row in rows for cell in row if "HYPERLINK" in cell]
    assert cells == [f"'{name}"] * 6  # title, row and column of two cells, and a text
    assert footer[0].startswith("# ")
    assert not any(cell.startswith(tuple(SIGNS)) for row in rows for cell in row[:3])
    assert rows[1][3:6] == ["-0.5", "-0.7", "-0.3"]  # numbers stay numbers


@pytest.mark.parametrize("text", ["-0.5", "-1e-05", "-0.20 / -0.25 [-0.3, -0.2] below", "- 1 x"])
def test_numbers_and_comparisons_stay(text: str) -> None:
    guarded = formats.inert(text) != text
    assert guarded == (text == "- 1 x")


def test_markdown_footers_and_captions_are_text() -> None:
    written = formats.markdown(named("a|b <script>alert(1)</script>\n# heading"))
    assert "<script>" not in written and "\n# heading" not in written
    assert all(line.count(" | ") <= 4 for line in written.splitlines())


def test_rates_are_rounded_by_their_digits() -> None:
    """In binary 0.695 lies below 0.695, and 0.575 above 0.575."""
    numbers = [0.695, 0.575, 0.6949, -0.005, -0.0049, 2.5e-10]
    assert [*map(formats.number, numbers)] == ["0.70", "0.58", "0.69", "-0.01", "0.00", "0.00"]


def test_other_decimals_are_rounded_in_the_same_way() -> None:
    assert [formats.number(100 * value, 0) for value in (0.695, 0.125, -0.004)] == ["70", "13", "0"]
    assert formats.number(0.25, 1) == "0.3"
    assert [*map(formats.signed, (0.695, -0.695, -0.001))] == ["+0.70", "-0.70", "0.00"]


SIZES = {
    4217400423.62: "4.22e9",
    -12345.0: "-1.23e4",
    9999.0: "9999.00",
    0.005: "0.01",
    0.00125: "1.25e-3",
    -2.5e-10: "-2.50e-10",
    1e-15: "0.00",  # of a difference
    0.0: "0.00",
}


@pytest.mark.parametrize("value", SIZES)
def test_quantities_of_any_size_are_legible(value: float) -> None:
    assert formats.quantity(value) == SIZES[value]


def test_only_rates_are_always_written_with_two_decimals() -> None:
    rate = cell(0.001, 0.0005, 20_000)
    large = replace(rate, any_size=True)
    assert formats.markdown_cell(rate, "bootstrap") == "0.00 [0.00, 20000.00]"
    assert formats.markdown_cell(large, "bootstrap") == "1.00e-3 [5.00e-4, 2.00e4]"
    expected = r"$1.00\mathrm{e}{-3}$ \scriptsize[5.00e-4, 2.00e4]"
    assert formats.latex_cell(large, "bootstrap") == expected
    assert "1.00e-3 <small>[5.00e-4, 2.00e4]</small>" in table_cell(large)


def test_a_table_that_is_longer_than_a_page_is_continued() -> None:
    rows = tuple((str(row), (cell(0.5, 0.4, 0.6),)) for row in range(18))
    table = replace(
        sample_table(), blocks=tuple(Block(name, "CW3", ("EWC",), rows) for name in "ABC")
    )
    text = formats.latex(table)
    assert text.count(r"\begin{table}") == text.count(r"\end{table}") == 2
    assert text.count(r"\label") == 1 and text.count("(continued)") == 1
    first, second = text.split(r"\addtocounter{table}{-1}")
    assert [name in first for name in ("{A}", "{B}", "{C}")] == [True, True, False]
    assert "{C}" in second


def test_a_verdict_is_a_second_line_in_latex() -> None:
    cell = Cell(text="0.30 / 0.33 [0.31, 0.37] protocol differs")
    expected = r"\shortstack{0.30 / 0.33 {[}0.31, 0.37]\\protocol differs}"
    assert formats.latex_cell(cell, "t") == expected
    assert formats.latex_cell(Cell(text="3 of 3"), "t") == "3 of 3"


def test_latex_knows_every_character():
    assert (
        formats.tex("λ=1|Δ 方") == r"\ensuremath{\lambda}=1\textbar{}\ensuremath{\Delta} (U+65B9)"
    )
    assert formats.tex("é – ü") == "é – ü"
