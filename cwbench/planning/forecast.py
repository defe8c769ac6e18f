"""When a plan will be done: its own estimate of what is left, corrected by the time so far."""

from collections.abc import Sequence

from cwbench.planning.fleet_time import (
    Ended,
    FleetNeeds,
    Fleets,
    Left,
    Parallelism,
    planned_seconds,
    steps_left,
)
from cwbench.spec.segment import Segment

TRUST_SECONDS = 60.0  # of measurement that a plan's estimate counts for
MISSED = 1.5  # times as long, or as short, as planned
LEAST_SECONDS = 10.0  # of measurement, where there is no estimate


class Forecast:
    """Time left of a plan. Where nothing was measured, all steps count alike.

    A plan knows that some fleets are slower than others, that some start when others end, and how
    many train at a time; steps per second know none of this.
    """

    def __init__(
        self,
        fleets: Fleets,
        needs: Sequence[FleetNeeds],
        parallel: Parallelism,
        resumed: Left | None = None,
        *,
        measured: bool = True,
    ) -> None:
        self.fleets, self.needs = fleets, needs
        self.parallel = parallel if measured else Parallelism()
        self.trust = TRUST_SECONDS if measured else 0.0
        self.steps = sum(one.steps for one in needs)  # of all segments, resumed or not
        self.left = self.steps_left(resumed or {})
        self._start: tuple[float, float] | None = None  # time, planned seconds left

    def steps_left(self, resumed: Left) -> dict[str, int]:
        """Of every segment, where some have begun."""
        return steps_left(self.fleets, self.needs, resumed)

    def planned(self, left: Left, ended: Ended | None = None) -> float:
        """Seconds that the rest takes according to the plan."""
        return planned_seconds(self.fleets, self.needs, self.parallel, left, ended)

    @property
    def measures(self) -> bool:
        return self._start is not None

    def start(self, now: float, left: Left) -> None:
        """Measure from here on; earlier time, such as that of compilation, says nothing."""
        self._start = now, self.planned(left)

    def missed(self, now: float) -> bool:
        """Whether a plan that is done took much longer or shorter than estimated."""
        if self._start is None or not self.trust or self._start[1] < LEAST_SECONDS:
            return False
        return not 1 / MISSED < (now - self._start[0]) / self._start[1] < MISSED

    def seconds(self, now: float, left: Left, ended: Ended | None = None) -> float | None:
        """Time left: as planned at first, then more and more as measured. None if unknown."""
        planned = self.planned(left, ended)
        if self._start is None:
            return planned if self.trust else None
        took, was_due = now - self._start[0], self._start[1] - planned
        if not self.trust and (took < LEAST_SECONDS or was_due <= 0):
            return None
        return planned * (took + self.trust) / (max(was_due, 0.0) + self.trust)


def steps_alone(fleet: Sequence[Segment], steps: int) -> FleetNeeds:
    """A fleet of which only the number of each run's steps is known: a second for each."""
    total = steps * len(fleet)
    return FleetNeeds(steps=total, update_seconds=float(total))
