"""What a training run shows: a table on a terminal, a bar in a notebook, lines elsewhere."""

import time
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.table import Table

from cwbench.fleet.fleet import Fleet

LINE_SECONDS = 30.0


def duration(seconds: float) -> str:
    """A length of time in at most two units: 45 s, 3 min 20 s, 5 h 12 min, 2 d 3 h."""
    units = (("d", 86400), ("h", 3600), ("min", 60), ("s", 1))
    left = max(0, round(seconds))
    parts: list[str] = []
    for name, size in units:
        count, left = divmod(left, size)
        if count or (name == "s" and not parts):
            parts.append(f"{count} {name}")
    return " ".join(parts[:2])


class Quiet:
    def begin(self, fleets: Sequence[Fleet]) -> None: ...
    def advance(self, fleet: Fleet) -> None: ...
    def end(self, fleets: Sequence[Fleet]) -> None: ...
    def leave(self, steps: int) -> None: ...
    def wait(self, segments: int) -> None: ...
    def __enter__(self) -> "Quiet":
        return self

    def __exit__(self, *_: object) -> None: ...


class Progress(Quiet):
    """Counts steps over all fleets of a plan; subclasses say how to show it."""

    def __init__(self, total_steps: int, console: Console) -> None:
        self.total, self.console = total_steps, console
        self.fleets: list[Fleet] = []
        self.finished = 0  # steps of earlier fleets
        self.started = time.monotonic()
        self.resumed = 0  # steps done before this process began

    def begin(self, fleets: Sequence[Fleet]) -> None:
        self.fleets += fleets
        self.resumed += sum(f.step * f.runs for f in fleets)

    def end(self, fleets: Sequence[Fleet]) -> None:
        """They are done, or will not be."""
        for fleet in fleets:
            if fleet in self.fleets:
                self.fleets.remove(fleet)
                self.finished += fleet.step * fleet.runs
                self.total -= (fleet.steps - fleet.step) * fleet.runs

    def leave(self, steps: int) -> None:
        """Others did this many of the steps."""
        self.total -= steps

    @property
    def steps(self) -> int:
        return self.finished + sum(f.step * f.runs for f in self.fleets)

    @property
    def speed(self) -> float:
        """Environment steps per second, all runs together."""
        return (self.steps - self.resumed) / max(time.monotonic() - self.started, 1e-9)

    @property
    def eta(self) -> str:
        return duration((self.total - self.steps) / self.speed) if self.speed > 0 else "?"


class Lines(Progress):
    """One line now and then, for logs."""

    def __init__(self, total_steps: int, console: Console) -> None:
        super().__init__(total_steps, console)
        self._last = -LINE_SECONDS
        self._fleet: Fleet | None = None
        self._waiting = 0

    def wait(self, segments: int) -> None:
        if segments != self._waiting:
            self.console.print(_waiting(segments), highlight=False, soft_wrap=True)
        self._waiting = segments

    def advance(self, fleet: Fleet) -> None:
        now = time.monotonic()
        ended = fleet.finished and fleet is not self._fleet
        if not ended and now - self._last < LINE_SECONDS:
            return
        self._last = now
        self._fleet = fleet if fleet.finished else self._fleet
        names = sorted({segment.tasks[-1] for segment in fleet.segments})
        known = [
            run.last_success for run in fleet.state.runs if run.last_success == run.last_success
        ]
        success = f"success {sum(known) / len(known):.2f}" if known else "no evaluation yet"
        self.console.print(
            f"{fleet.setup.method} task {fleet.position + 1} ({', '.join(names)}): "
            f"step {fleet.step}/{fleet.steps}, {fleet.runs} runs, {success}, "
            f"{self.speed:.0f} steps/s, {self.eta} left",
            highlight=False,
            soft_wrap=True,
        )


class Screen(Progress):
    """A table of the runs under way, redrawn in place."""

    MOST = 30  # rows; a fleet of a hundred would not fit a terminal

    def __init__(self, total_steps: int, console: Console) -> None:
        super().__init__(total_steps, console)
        self.caption = ""
        self.live = Live(console=console, get_renderable=self.table, refresh_per_second=2)

    def __enter__(self) -> "Screen":
        self.live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.live.stop()

    def begin(self, fleets: Sequence[Fleet]) -> None:
        super().begin(fleets)
        self.caption = ""

    def wait(self, segments: int) -> None:
        self.caption = _waiting(segments)

    def table(self) -> Any:
        share = self.steps / self.total if self.total else 1.0
        table = Table(
            title=f"{share:.0%} of {self.total:,} steps, {self.speed:.0f} steps/s, {self.eta} left",
            caption=self.caption,
        )
        for name in ("run", "task", "step", "success", "training success"):
            table.add_column(name, justify="left" if name in ("run", "task") else "right")
        rows = [(fleet, run) for fleet in self.fleets for run in range(fleet.runs)]
        for fleet, run in rows[: self.MOST]:
            segment, state = fleet.segments[run], fleet.state.runs[run]
            success, count = state.last_success, state.counts
            table.add_row(
                f"{segment.setup.method} seed {segment.seed}",
                f"{fleet.position + 1} {segment.tasks[-1]}",
                f"{fleet.step:,}/{fleet.steps:,}",
                f"{success:.2f}" if success == success else "-",
                f"{count.successes}/{count.episodes}",
            )
        if len(rows) > self.MOST:
            table.add_row(f"and {len(rows) - self.MOST} more")
        return table


class NotebookBar(Progress):
    """One bar, updated in place under a notebook's cell."""

    EVERY_SECONDS = 0.5

    def __init__(self, total_steps: int, console: Console) -> None:
        super().__init__(total_steps, console)
        self.caption = ""
        self._shown = 0.0
        self._handle: Any = None

    def __enter__(self) -> "NotebookBar":
        from IPython.display import display

        self._handle = display(self._content(), raw=True, display_id=True)
        return self

    def __exit__(self, *_: object) -> None:
        self._show()

    def begin(self, fleets: Sequence[Fleet]) -> None:
        super().begin(fleets)
        self.caption = ""

    def advance(self, fleet: Fleet) -> None:
        if time.monotonic() - self._shown > self.EVERY_SECONDS:
            self._show()

    def wait(self, segments: int) -> None:
        self.caption = _waiting(segments)
        self._show()

    def _show(self) -> None:
        self._shown = time.monotonic()
        self._handle.update(self._content(), raw=True)

    def _content(self) -> dict[str, str]:
        text = f"{self.steps:,} of {self.total:,} steps, {self.speed:.0f} steps/s, {self.eta} left"
        text = f"{text}; {self.caption}" if self.caption else text
        bar = f'<progress value="{self.steps}" max="{max(self.total, 1)}"></progress>'
        return {"text/plain": text, "text/html": f"{bar} {text}"}


def _waiting(segments: int) -> str:
    return f"waiting for {segments} segments that other processes are training"


def make_progress(total_steps: int, console: Console, *, quiet: bool) -> Quiet:
    if quiet:
        return Quiet()
    if console.is_jupyter:
        return NotebookBar(total_steps, console)
    return (Screen if console.is_terminal else Lines)(total_steps, console)
