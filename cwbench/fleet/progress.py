"""How far a plan has come, and how long the rest will take."""

import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from rich.console import Console

from cwbench.fleet.group import Group
from cwbench.planning.fleet_time import Ended, Left
from cwbench.planning.forecast import Forecast
from cwbench.spec.segment import Segment
from cwbench.spec.text import counted, duration

MEASURE_SECONDS, WINDOW_SECONDS = 10.0, 60.0  # of a speed: at least, and at most


@dataclass(frozen=True)
class Row:
    """A group that this process trains, or a fleet that another trains, as it is shown."""

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
class PlanState:
    """How far a plan has come, in this process or in others."""

    rows: Sequence[Row] = ()  # of what is under way
    left: Left = field(default_factory=dict)  # steps of each segment; without finished ones
    ended: Ended = field(default_factory=dict)
    settled: bool = False  # all that is under way is past its first updates, which compile
    made: int = 0  # steps
    speed: float | None = None  # steps per second

    @property
    def total(self) -> int:
        """Steps made and left."""
        return self.made + sum(self.left.values())


Look = Callable[[], PlanState]


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


class Display:
    """What the runner reports to. This one shows nothing."""

    def begin(self, groups: Sequence[Group]) -> None: ...
    def advance(self, group: Group) -> None: ...
    def end(self, groups: Sequence[Group], again: Collection[str] = ()) -> None: ...
    def leave(self, segment: Segment) -> None: ...  # nothing is left to do for it here
    def wait(self, segments: int) -> None: ...  # for segments that others are training
    def watch(self, look: Look) -> None: ...  # fleets that train elsewhere
    def __enter__(self) -> "Display":
        return self

    def __exit__(self, *_: object) -> None: ...


class Progress(Display):
    """Counts steps over all fleets of a plan; subclasses say how to show it."""

    def __init__(self, forecast: Forecast, console: Console) -> None:
        self.forecast, self.console = forecast, console
        self.groups: list[Group] = []
        self.state: Look = self._state_here
        self.caption = ""
        self._left = dict(forecast.left)  # steps of segments that are not over, as planned
        self._made = forecast.steps - sum(forecast.left.values())
        self._speed = Speed()
        self._speeds: dict[int, Speed] = {}  # by group
        self._steps: dict[int, int] = {}  # that each group had made when it was last seen
        self._over = threading.Event()

    def __exit__(self, *_: object) -> None:
        self._over.set()

    def begin(self, groups: Sequence[Group]) -> None:
        self.groups += groups
        self.caption = ""
        self._speeds |= {id(group): Speed() for group in groups}
        self._steps |= {id(group): group.step for group in groups}

    def advance(self, group: Group) -> None:
        now, before = time.monotonic(), self._steps[id(group)]
        self._made += (group.step - before) * group.runs
        self._steps[id(group)] = group.step
        self._speeds[id(group)].add(now, group.step * group.runs)
        self._speed.add(now, self._made)
        if not self.forecast.measures:
            self._start_forecast(self.state())

    def end(self, groups: Sequence[Group], again: Collection[str] = ()) -> None:
        """They are done or given up, but segments with an id in `again` will start over."""
        for group in groups:
            if group in self.groups:
                self.groups.remove(group)
                self._steps.pop(id(group))
                self._speeds.pop(id(group))
                for segment in group.segments:
                    if segment.id not in again:
                        self._left.pop(segment.id, None)

    def leave(self, segment: Segment) -> None:
        """Another process trained it, or it will not be trained."""
        self._left.pop(segment.id, None)

    def wait(self, segments: int) -> None:
        self.caption = (
            f"waiting for {counted(segments, 'segment')} that other processes are training"
        )

    def watch(self, look: Look) -> None:
        """Show fleets that other processes train."""
        self.state = look

    def _state_here(self) -> PlanState:
        """Of the groups of this process."""
        groups = list(self.groups)
        return PlanState(
            [self._row(group) for group in groups],
            self._steps_left(groups),
            _retrained(groups),
            settled=bool(groups) and all(group.settled for group in groups),
            made=self._made,
            speed=self._speed.value,
        )

    def _steps_left(self, groups: Sequence[Group]) -> dict[str, int]:
        left = dict(self._left)
        for group in groups:
            for segment in group.segments:
                left[segment.id] = group.steps - group.step
                if group.ended:
                    del left[segment.id]
        return left

    def _row(self, group: Group) -> Row:
        speed = self._speeds.get(id(group))  # none if it has just ended, in another thread
        names = sorted({segment.tasks[-1] for segment in group.segments})
        successes = [run.success for run in group.state.runs]
        return Row(
            group.setup.method,
            task_name(group.position, names),
            group.runs,
            group.step,
            group.steps,
            [success for success in successes if success is not None],
            speed.value if speed else None,
            group.retraining,
        )

    def steps(self) -> tuple[int, int]:
        """Made so far, and in all."""
        state = self.state()
        return state.made, state.total

    def summary(self) -> str:
        """Steps, speed and time left, as far as they are known."""
        state = self.state()
        self._start_forecast(state)
        left = self.forecast.seconds(time.monotonic(), state.left, state.ended)
        parts = [f"{state.made:,} of {state.total:,} steps"]
        parts += [f"{state.speed:,.0f} steps/s"] if state.speed else []
        parts += [f"about {duration(left)} left"] if left is not None else []
        return ", ".join(parts)

    def _start_forecast(self, state: PlanState) -> None:
        """Compare with the plan from here on, once all that is under way has made updates."""
        if state.settled and not self.forecast.measures:
            self.forecast.start(time.monotonic(), state.left)

    def _repeat(self, seconds: float, action: Callable[[], None]) -> None:
        """In a thread, because a launcher waits in the main one."""

        def loop() -> None:
            while not self._over.wait(seconds):
                action()

        threading.Thread(target=loop, daemon=True).start()


def _retrained(groups: Sequence[Group]) -> dict[str, float]:
    """The share of its retraining that each segment has behind it."""
    return {
        segment.id: group.retraining[0] / group.retraining[1]
        for group in groups
        if group.retraining
        for segment in group.segments
    }


def task_name(position: int, names: Sequence[str]) -> str:
    """A position with its task, or how many different ones its runs have."""
    return f"{position + 1} {names[0] if len(names) == 1 else f'({len(names)} tasks)'}"
