"""What the commands print: lines, tables, progress."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.table import Table

if TYPE_CHECKING:
    from cwbench.fleet.sharing import Progress


class Terminal:
    """Where a session's lines and progress go; with `quiet` only problems."""

    def __init__(self, *, quiet: bool = False, stderr: bool = False) -> None:
        self.quiet, self.console = quiet, Console(stderr=stderr)

    def say(self, text: str) -> None:
        if not self.quiet:
            self.warn(text)

    def warn(self, text: str) -> None:
        self.console.print(text, highlight=False, markup=False, soft_wrap=True)

    def progress(self, total_steps: int) -> AbstractContextManager[Progress]:
        from cwbench.fleet.progress import make_progress

        return make_progress(total_steps, self.console, quiet=self.quiet)


def show(rows: Sequence[tuple[str, ...]], *columns: str) -> None:
    """A table that is plain text when it goes to a file."""
    table = Table(*columns, box=None, pad_edge=False, header_style="bold")
    for row in rows:
        table.add_row(*map(escape, row))
    width = None if Console().is_terminal else 160
    Console(width=width).print(table)
