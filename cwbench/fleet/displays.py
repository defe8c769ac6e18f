"""How progress is shown: a table on a terminal, a bar in a notebook, lines elsewhere."""

import contextlib
import math
import time
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.table import Table

from cwbench.fleet.group import Group
from cwbench.fleet.progress import Display, Look, Progress, Row
from cwbench.planning.forecast import Forecast
from cwbench.spec.text import at_task_end, counted

LINE_SECONDS = 30.0
TABLE_WIDTH = 70  # columns of the terminal; a narrower table cuts its heads and numbers off


class Lines(Progress):
    """A line every half minute, for logs."""

    def __init__(self, forecast: Forecast, console: Console) -> None:
        super().__init__(forecast, console)
        self._last: dict[int, float] = {}  # when a line was printed, by group; inf: its last

    def begin(self, groups: Sequence[Group]) -> None:
        super().begin(groups)
        self._last |= {id(group): -math.inf for group in groups}  # an id may be an ended group's

    def wait(self, segments: int) -> None:
        before = self.caption
        super().wait(segments)
        if self.caption != before:
            self._print(self.caption)

    def advance(self, group: Group) -> None:
        super().advance(group)
        now, last = time.monotonic(), self._last[id(group)]
        if last < math.inf and (group.ended or now - last >= LINE_SECONDS):
            self._last[id(group)] = math.inf if group.ended else now
            self._print_row(self._row(group))

    def watch(self, look: Look) -> None:
        super().watch(look)
        self._repeat(LINE_SECONDS, self._print_rows)

    def _print_rows(self) -> None:
        for row in self.state().rows:
            if row.step:
                self._print_row(row)

    def _print_row(self, row: Row) -> None:
        success = f"success {row.success}" if row.successes else "no evaluation yet"
        where = at_task_end(row.retraining) if row.retraining else f"step {row.step}/{row.steps}"
        self._print(
            f"{row.method} task {row.task}: {where}, "
            f"{counted(row.runs, 'run')}, {success}; {self.summary()}"
        )

    def _print(self, text: str) -> None:
        with contextlib.suppress(OSError):  # a log on a full disk must not end the training
            self.console.print(text, highlight=False, soft_wrap=True)


class Screen(Progress):
    """A table of what is under way, redrawn in place and gone at the end."""

    MOST = 30  # rows that fit a terminal
    COLUMNS = ("method", "task", "runs", "step", "success", "steps/s", "left")

    def __init__(self, forecast: Forecast, console: Console) -> None:
        super().__init__(forecast, console)
        self.live = Live(
            console=console, get_renderable=self.table, refresh_per_second=2, transient=True
        )

    def __enter__(self) -> "Screen":
        self.live.start()
        return self

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        self.live.stop()

    def table(self) -> Any:
        rows = self.state().rows
        table = Table(title=self.summary(), caption=self.caption)
        for name in self.COLUMNS:
            table.add_column(name, justify="left" if name in ("method", "task") else "right")
        for row in rows[: self.MOST]:
            table.add_row(
                row.method,
                row.task,
                str(row.runs),
                at_task_end(row.retraining) if row.retraining else f"{row.step:,}/{row.steps:,}",
                row.success,
                f"{row.speed:,.0f}" if row.speed else "-",
                row.left,
            )
        if len(rows) > self.MOST:
            table.add_row(f"and {len(rows) - self.MOST} more")
        return table


class NotebookBar(Progress):
    """One bar, updated in place under a notebook's cell."""

    EVERY_SECONDS = 0.5

    def __init__(self, forecast: Forecast, console: Console) -> None:
        super().__init__(forecast, console)
        self._shown = 0.0
        self._handle: Any = None

    def __enter__(self) -> "NotebookBar":
        from IPython.display import display

        self._handle = display(self._content(), raw=True, display_id=True)
        return self

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        self._show()

    def watch(self, look: Look) -> None:
        super().watch(look)
        self._repeat(self.EVERY_SECONDS, self._show)

    def advance(self, group: Group) -> None:
        super().advance(group)
        if time.monotonic() - self._shown > self.EVERY_SECONDS:
            self._show()

    def wait(self, segments: int) -> None:
        super().wait(segments)
        self._show()

    def _show(self) -> None:
        self._shown = time.monotonic()
        self._handle.update(self._content(), raw=True)

    def _content(self) -> dict[str, str]:
        made, total = self.steps()
        ends = [at_task_end(row.retraining) for row in self.state().rows if row.retraining]
        text = "; ".join(filter(None, (self.summary(), *ends, self.caption)))
        bar = f'<progress value="{made}" max="{max(total, 1)}"></progress>'
        return {"text/plain": text, "text/html": f"{bar} {text}"}


def make_progress(forecast: Forecast, console: Console, *, quiet: bool) -> Display:
    if quiet:
        return Display()
    if console.is_jupyter:
        return NotebookBar(forecast, console)
    redraws = console.is_terminal and not console.is_dumb_terminal
    kind = Screen if redraws and console.width >= TABLE_WIDTH else Lines
    return kind(forecast, console)
