"""Tables and problems that commands print."""

import json
import os
from collections.abc import Iterable, Sequence

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

WIDE = 1_000  # in a file a row is a line

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")


def show(rows: Sequence[tuple[str, ...]], *columns: str, as_json: bool = False) -> None:
    """A table that is plain text when it goes to a file; or JSON, an object per row.

    Cells of a narrow terminal are wrapped, not cut off: names can still be copied. Where even the
    heads do not fit, every row is a paragraph.
    """
    if as_json:
        print(json.dumps([dict(zip(columns, row, strict=True)) for row in rows], indent=1))
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for number, column in enumerate(columns):
        table.add_column(column, overflow="fold", no_wrap=number == 0)
    for row in rows:
        table.add_row(*map(escape, row))
    width = None if Console().is_terminal or "COLUMNS" in os.environ else WIDE
    console = Console(width=width)
    first = max(len(row[0]) for row in [columns, *rows])
    if first + sum(len(column) + 1 for column in columns[1:]) <= console.width:
        console.print(table)
        return
    for row in rows:
        if row[0]:
            click.echo(row[0])
        for column, cell in zip(columns[1:], row[1:], strict=True):
            if cell:
                click.echo(f"  {column}: {cell}")


def show_problems(problems: Iterable[str]) -> None:
    """What could not be read or used, apart from the output."""
    for problem in problems:
        click.echo(f"problem: {problem}", err=True)
