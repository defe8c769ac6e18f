"""Where a session's lines and progress go: a terminal, a notebook, a log, nowhere."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from rich.console import Console

if TYPE_CHECKING:
    from cwbench.fleet.progress import Display
    from cwbench.planning.forecast import Forecast


class Listener(Protocol):
    """Who is told what happens: the command line, a notebook, a test."""

    def say(self, text: str) -> None:
        """One line of information."""

    def warn(self, text: str) -> None:
        """One line about a problem; shown even where information is not."""

    def progress(self, forecast: Forecast) -> AbstractContextManager[Display]:
        """Shows progress while training runs inside it."""


class Silent:
    """Tells nobody."""

    def say(self, text: str) -> None: ...
    def warn(self, text: str) -> None: ...
    def progress(self, forecast: Forecast) -> AbstractContextManager[Display]:
        from cwbench.fleet.progress import Display

        return Display()


class Output(Console):
    """A console that says why training ends when nobody reads it any more, as after `| head`."""

    trains = True

    def on_broken_pipe(self) -> None:
        if self.trains:
            what = "the output was closed, so cwbench stops; the same command continues"
            print(f"cwbench: {what}", file=sys.stderr)
        super().on_broken_pipe()


class Terminal:
    """Prints what a session tells; with `quiet` only problems. Not `trains`: of a dry run."""

    def __init__(self, *, quiet: bool = False, stderr: bool = False, trains: bool = True) -> None:
        self.quiet, self.console = quiet, Output(stderr=stderr)
        self.console.trains = trains

    def __reduce__(self) -> tuple[Any, ...]:  # a console has locks, which cannot be copied
        shown = {"stderr": self.console.stderr, "trains": self.console.trains}
        return partial(Terminal, quiet=self.quiet, **shown), ()

    def say(self, text: str) -> None:
        if not self.quiet:
            self.warn(text)

    def warn(self, text: str) -> None:
        encoding = self.console.encoding  # an ASCII one cannot show every folder's name
        text = text.encode(encoding, "backslashreplace").decode(encoding)
        self.console.print(text, highlight=False, markup=False, soft_wrap=True)

    def progress(self, forecast: Forecast) -> AbstractContextManager[Display]:
        from cwbench.fleet.displays import make_progress

        return make_progress(forecast, self.console, quiet=self.quiet)
