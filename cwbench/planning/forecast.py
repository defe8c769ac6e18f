"""When a plan will be done: its own estimate of what is left, corrected by the time so far."""

from collections.abc import Sequence

from cwbench.planning.estimate import FleetNeeds, Left, planned_seconds, steps_left
from cwbench.spec.segment import Segment

TRUST_SECONDS = 60.0  # of measurement that a plan's estimate counts for
LEAST_SECONDS = 10.0  # of measurement, where there is no estimate


class Forecast:
    """Time left of a plan. Without an estimate of its fleets, all steps count alike.

    A plan knows that some fleets are slower than others, that some start when others end, and how
    many train at a time; steps per second know none of this.
    """

    def __init__(
        self,
        fleets: Sequence[Sequence[Segment]],
        needs: Sequence[FleetNeeds] | None,
        side_by_side: int,
        resumed: Left | None = None,
    ) -> None:
        self.fleets = fleets
        self.needs = needs or [_steps_alone(fleet) for fleet in fleets]
        self.side_by_side = side_by_side if needs else 1
        self.trust = TRUST_SECONDS if needs else 0.0
        self.left = steps_left(fleets, resumed or {})
        self._start: tuple[float, float] | None = None  # time, planned seconds left

    def planned(self, left: Left) -> float:
        """Seconds that the rest takes according to the plan."""
        return planned_seconds(self.fleets, self.needs, self.side_by_side, left)

    @property
    def measures(self) -> bool:
        return self._start is not None

    def start(self, now: float, left: Left) -> None:
        """Measure from here on; earlier time, such as that of compilation, says nothing."""
        self._start = now, self.planned(left)

    def seconds(self, now: float, left: Left) -> float | None:
        """Time left: as planned at first, then more and more as measured. None if unknown."""
        planned = self.planned(left)
        if self._start is None:
            return planned if self.trust else None
        took, was_due = now - self._start[0], self._start[1] - planned
        if not self.trust and (took < LEAST_SECONDS or was_due <= 0):
            return None
        return planned * (took + self.trust) / (max(was_due, 0.0) + self.trust)


def _steps_alone(fleet: Sequence[Segment]) -> FleetNeeds:
    steps = sum(segment.steps for segment in fleet)
    return FleetNeeds(steps, 0, 0, 0, 0, float(steps), 0.0, 0.0)
