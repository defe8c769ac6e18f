"""What a training run shows: a table on a terminal, a bar in a notebook, lines elsewhere."""

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.table import Table

from cwbench.fleet.fleet import Fleet
from cwbench.planning.fleet_time import Ended, Left
from cwbench.planning.forecast import Forecast
from cwbench.spec.segment import Segment
from cwbench.spec.text import at_task_end, counted, duration

LINE_SECONDS = 30.0
MEASURE_SECONDS, WINDOW_SECONDS = 10.0, 60.0  # of a speed: at least, and at most


@dataclass(frozen=True)
class Row:
    """A fleet, as it is shown."""

    method: str
    task: str
    runs: int
    step: int
    steps: int  # of each run in the whole task
    successes: Sequence[float] = ()  # latest success rates of those runs that have one
    speed: float | None = None  # steps per second, all runs together
    retraining: tuple[int, int] | None = None  # updates at the task's end: made, asked for

    @property
    def success(self) -> str:
        """The mean, and the range where runs differ."""
        if not self.successes:
            return "-"
        low, high = min(self.successes), max(self.successes)
        mean = f"{sum(self.successes) / len(self.successes):.2f}"
        return mean if low == high else f"{mean} ({low:.2f} to {high:.2f})"

    @property
    def left(self) -> str:
        if self.retraining or not self.speed:
            return "-"
        return duration((self.steps - self.step) * self.runs / self.speed)


@dataclass(frozen=True)
class Elsewhere:
    """What other processes have made of a plan so far."""

    rows: Sequence[Row] = ()  # of fleets under way
    left: Left = field(default_factory=dict)
    ended: Ended = field(default_factory=dict)
    settled: bool = False  # they are past their first updates, which compile


Look = Callable[[], Elsewhere]


class Speed:
    """Steps per second over the last minute; None until ten seconds have been measured."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()  # time, steps

    def add(self, now: float, steps: int) -> None:
        self._seen.append((now, steps))
        while len(self._seen) > 2 and self._seen[1][0] <= now - WINDOW_SECONDS:
            self._seen.popleft()

    @property
    def value(self) -> float | None:
        if not self._seen:
            return None
        (start, first), (end, last) = self._seen[0], self._seen[-1]
        return (last - first) / (end - start) if end - start >= MEASURE_SECONDS else None


class Quiet:
    def begin(self, fleets: Sequence[Fleet]) -> None: ...
    def advance(self, fleet: Fleet) -> None: ...
    def end(self, fleets: Sequence[Fleet]) -> None: ...
    def leave(self, segment: Segment) -> None: ...
    def wait(self, segments: int) -> None: ...
    def watch(self, look: Look) -> None: ...
    def __enter__(self) -> "Quiet":
        return self

    def __exit__(self, *_: object) -> None: ...


class Progress(Quiet):
    """Counts steps over all fleets of a plan; subclasses say how to show it."""

    def __init__(self, forecast: Forecast, console: Console) -> None:
        self.forecast, self.console = forecast, console
        self.fleets: list[Fleet] = []
        self._left = dict(forecast.left)  # what is left of segments, those under way excepted
        self._made = forecast.steps - sum(forecast.left.values())
        self.caption = ""
        self._speed = Speed()
        self._speeds: dict[int, Speed] = {}  # by fleet
        self._steps: dict[int, int] = {}  # that each fleet had made when it was last seen
        self._look: Look | None = None
        self._over = threading.Event()

    def __exit__(self, *_: object) -> None:
        self._over.set()

    def begin(self, fleets: Sequence[Fleet]) -> None:
        self.fleets += fleets
        self.caption = ""
        self._speeds |= {id(fleet): Speed() for fleet in fleets}
        self._steps |= {id(fleet): fleet.step for fleet in fleets}

    def advance(self, fleet: Fleet) -> None:
        now, before = time.monotonic(), self._steps[id(fleet)]
        self._made += (fleet.step - before) * fleet.runs
        self._steps[id(fleet)] = fleet.step
        self._speeds[id(fleet)].add(now, fleet.step * fleet.runs)
        self._speed.add(now, self._made)
        if not self.forecast.measures and all(fleet.settled for fleet in self.fleets):
            self.forecast.start(now, self.left())

    def end(self, fleets: Sequence[Fleet]) -> None:
        """They are done, or will not be, unless they begin again."""
        for fleet in fleets:
            if fleet in self.fleets:
                self.fleets.remove(fleet)
                for segment in fleet.segments:
                    self._left.pop(segment.id, None)

    def leave(self, segment: Segment) -> None:
        """Others trained it, or nobody will."""
        self._left.pop(segment.id, None)

    def left(self) -> dict[str, int]:
        """The steps that each segment has left; without finished ones."""
        if self._look is not None:
            return dict(self._look().left)
        left = dict(self._left)
        for fleet in self.fleets:
            for segment in fleet.segments:
                left[segment.id] = fleet.steps - fleet.step
                if fleet.ended:
                    del left[segment.id]
        return left

    def ended(self) -> Ended:
        """The share of its retraining that each segment has behind it."""
        if self._look is not None:
            return self._look().ended
        return {
            segment.id: fleet.retraining[0] / fleet.retraining[1]
            for fleet in self.fleets
            if fleet.retraining
            for segment in fleet.segments
        }

    def wait(self, segments: int) -> None:
        self.caption = (
            f"waiting for {counted(segments, 'segment')} that other processes are training"
        )

    def watch(self, look: Look) -> None:
        """Show fleets that other processes train."""
        self._look = look

    def rows(self) -> list[Row]:
        if self._look is not None:
            return list(self._look().rows)
        return [self._row(fleet) for fleet in self.fleets]

    def _row(self, fleet: Fleet) -> Row:
        names = sorted({segment.tasks[-1] for segment in fleet.segments})
        successes = [run.success for run in fleet.state.runs]
        return Row(
            fleet.setup.method,
            task_name(fleet.position, names),
            fleet.runs,
            fleet.step,
            fleet.steps,
            [success for success in successes if success is not None],
            self._speeds[id(fleet)].value,
            fleet.retraining,
        )

    def steps(self) -> tuple[int, int]:
        """Made so far, and in all."""
        left = sum(self.left().values())
        made = self._made if self._look is None else self.forecast.steps - left
        return made, made + left

    def summary(self) -> str:
        """Steps, speed and time left, as far as they are known."""
        made, total = self.steps()
        speed, left = self._speed.value, self._seconds_left()
        if self._look is not None:
            speed = sum(row.speed or 0 for row in self._look().rows)
        parts = [f"{made:,} of {total:,} steps"]
        parts += [f"{speed:,.0f} steps/s"] if speed else []
        parts += [f"about {duration(left)} left"] if left is not None else []
        return ", ".join(parts)

    def _seconds_left(self) -> float | None:
        now = time.monotonic()
        if self._look is not None and self._look().settled and not self.forecast.measures:
            self.forecast.start(now, self.left())
        return self.forecast.seconds(now, self.left(), self.ended())

    def _repeat(self, seconds: float, action: Callable[[], None]) -> None:
        """In a thread, because a launcher waits in the main one."""

        def loop() -> None:
            while not self._over.wait(seconds):
                action()

        threading.Thread(target=loop, daemon=True).start()


def task_name(position: int, names: Sequence[str]) -> str:
    """A position with its task, or how many different ones its runs have."""
    return f"{position + 1} {names[0] if len(names) == 1 else f'({len(names)} tasks)'}"


class Lines(Progress):
    """One line now and then, for logs."""

    def __init__(self, forecast: Forecast, console: Console) -> None:
        super().__init__(forecast, console)
        self._last: dict[int, float] = {}  # when a line was printed, by fleet

    def wait(self, segments: int) -> None:
        before = self.caption
        super().wait(segments)
        if self.caption != before:
            self._print(self.caption)

    def advance(self, fleet: Fleet) -> None:
        super().advance(fleet)
        now, last = time.monotonic(), self._last.get(id(fleet), -math.inf)
        if last < math.inf and (fleet.ended or now - last >= LINE_SECONDS):
            self._last[id(fleet)] = math.inf if fleet.ended else now
            self._print_row(self._row(fleet))

    def watch(self, look: Look) -> None:
        super().watch(look)
        self._repeat(LINE_SECONDS, self._print_rows)

    def _print_rows(self) -> None:
        for row in self.rows():
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
        self.console.print(text, highlight=False, soft_wrap=True)


class Screen(Progress):
    """A table of the fleets under way, redrawn in place."""

    MOST = 30  # rows that fit a terminal
    COLUMNS = ("method", "task", "runs", "step", "success", "steps/s", "left")

    def __init__(self, forecast: Forecast, console: Console) -> None:
        super().__init__(forecast, console)
        self.live = Live(console=console, get_renderable=self.table, refresh_per_second=2)

    def __enter__(self) -> "Screen":
        self.live.start()
        return self

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        self.live.stop()

    def table(self) -> Any:
        rows = self.rows()
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

    def advance(self, fleet: Fleet) -> None:
        super().advance(fleet)
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
        ends = [at_task_end(row.retraining) for row in self.rows() if row.retraining]
        text = "; ".join(filter(None, (self.summary(), *ends, self.caption)))
        bar = f'<progress value="{made}" max="{max(total, 1)}"></progress>'
        return {"text/plain": text, "text/html": f"{bar} {text}"}


def make_progress(forecast: Forecast, console: Console, *, quiet: bool) -> Quiet:
    if quiet:
        return Quiet()
    if console.is_jupyter:
        return NotebookBar(forecast, console)
    return (Screen if console.is_terminal else Lines)(forecast, console)
