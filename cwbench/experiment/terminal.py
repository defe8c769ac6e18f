"""Where a session's lines and progress go: a terminal, a notebook, a log."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from rich.console import Console

if TYPE_CHECKING:
    from cwbench.fleet.sharing import Progress


class Terminal:
    """Prints what a session tells; with `quiet` only problems."""

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
