"""Tables and problems that commands print."""

import json
import os
from collections.abc import Iterable, Sequence

import click
from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape
from rich.table import Table

WIDE = 1_000  # in a file a row is a line

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")


def show(rows: Sequence[tuple[str | int, ...]], *columns: str, as_json: bool = False) -> None:
    """A table that is plain text when it goes to a file; or JSON, an object per row.

    Cells of a narrow terminal are wrapped, not cut off: names can still be copied. Where even the
    heads do not fit, every row is a paragraph.
    """
    if as_json:
        print(json.dumps([dict(zip(columns, row, strict=True)) for row in rows], indent=1))
        return
    texts = [tuple(map(str, row)) for row in rows]
    width = None if Console().is_terminal or "COLUMNS" in os.environ else WIDE
    console = Console(width=width)
    widths = _widths(texts, columns, console.width)
    if widths is not None:
        table = Table(box=None, pad_edge=False, header_style="bold")
        for column, cells in zip(columns, widths, strict=True):
            table.add_column(column, overflow="fold", width=cells)
        for row in texts:
            table.add_row(*map(escape, row))
        console.print(table)
        return
    for row in texts:
        if row[0]:
            click.echo(row[0])
        for column, cell in zip(columns[1:], row[1:], strict=True):
            if cell:
                click.echo(f"  {column}: {cell}")


def _widths(
    rows: Sequence[tuple[str, ...]], columns: Sequence[str], width: int
) -> list[int] | None:
    """Of columns with two spaces between them, the widest wrapped; None if heads do not fit."""
    widths = [max(map(cell_len, cells)) for cells in zip(columns, *rows, strict=True)]
    excess = sum(widths) + 2 * (len(columns) - 1) - width
    for number in sorted(range(1, len(columns)), key=lambda number: -widths[number]):
        less = min(max(excess, 0), widths[number] - cell_len(columns[number]))
        widths[number], excess = widths[number] - less, excess - less
    return widths if excess <= 0 else None


def show_problems(problems: Iterable[str]) -> None:
    """What could not be read or used, apart from the output."""
    for problem in problems:
        click.echo(f"problem: {problem}", err=True)
