"""Tables that commands print."""

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table


def show(rows: Sequence[tuple[str, ...]], *columns: str) -> None:
    """A table that is plain text when it goes to a file."""
    table = Table(*columns, box=None, pad_edge=False, header_style="bold")
    for row in rows:
        table.add_row(*map(escape, row))
    width = None if Console().is_terminal else 160
    Console(width=width).print(table)
