"""How long fleets take that train at the same time, or one after another."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush

from cwbench.spec.segment import Segment

# Runs that use a GPU fully; fewer leave it to other fleets for a part of the time.
FULL_DEVICE = 50

Fleets = Sequence[Sequence[Segment]]
Left = Mapping[str, int]  # segment id -> steps still to do; without finished segments

Ended = Mapping[str, float]  # segment id -> share of its task's end that is over


@dataclass(frozen=True)
class Parallelism:
    """What trains at the same time."""

    side_by_side: int = 1  # fleets in one process, at most
    processes: int = 0  # that a launcher starts, one for each fleet; 0: this one trains
    devices: int = 1  # that these share
    cores: int = 1  # of each process

    def occupancy(self, device: str, runs: int) -> float:
        """The share of a device that a fleet takes while it updates.

        Updates on a CPU block the thread that drives all fleets; processes have their own cores.
        """
        return min(1.0, runs / FULL_DEVICE) if device == "cuda" else 1 / max(1, self.processes)

    def runs(self, fleets: Fleets) -> int:
        """Most runs that one process trains at once."""
        together = 1 if self.processes else self.side_by_side
        return sum(sorted(map(len, fleets), reverse=True)[:together])

    @property
    def fleets_per_device(self) -> int:
        return -(-self.processes // self.devices) or self.side_by_side


@dataclass(frozen=True)
class FleetNeeds:
    """What one fleet of a plan needs."""

    steps: int
    eval_steps: int = 0
    updates: int = 0
    bytes: int = 0  # of its tensors
    disk_bytes: int = 0
    update_seconds: float = 0.0  # of the device
    collect_seconds: float = 0.0  # of as many workers as it can use
    pool_seconds: float = 0.0  # of all workers, evaluation included
    end_seconds: float = 0.0  # of what the method does at the task's end; no other fleet trains
    groups: int = 1  # that take turns
    lag: int = 0  # chunks collected during updates; 0 where these take the workers' cores
    start_seconds: float = 0.0  # of its own process, before it trains
    occupancy: float = 1.0  # share of the device that its updates take

    @property
    def alone(self) -> float:
        """Seconds if nothing else trains: one group updates while others collect.

        With a lag the group that updates has its next chunk collected, too.
        """
        longer, shorter = sorted((self.update_seconds, self.collect_seconds), reverse=True)
        waits = 0.0 if self.lag else shorter / self.groups
        trains = max(longer + waits, self.pool_seconds)
        return self.start_seconds + trains + self.end_seconds

    @property
    def device_seconds(self) -> float:
        """Time for which the device can do nothing else."""
        return self.update_seconds * self.occupancy + self.end_seconds


def seconds_together(fleets: Fleets, needs: Sequence[FleetNeeds], parallel: Parallelism) -> float:
    """Time of all fleets in one process: the bottleneck decides.

    That is the longest chain of fleets that start from each other, or the device, or the workers,
    or the number of fleets that train at a time.
    """
    if parallel.side_by_side == 1:
        return sum(one.alone for one in needs)
    slowed = _slowed_by_others(fleets, needs, parallel.side_by_side)
    ends: dict[str, float] = {}  # of each segment's chain
    for fleet, one in zip(fleets, slowed, strict=True):
        parents = [parent.id for segment in fleet for parent in segment.parents]
        end = one.alone + max((ends.get(parent, 0.0) for parent in parents), default=0.0)
        ends |= dict.fromkeys((segment.id for segment in fleet), end)
    return max(
        max(ends.values(), default=0.0),
        sum(one.device_seconds for one in needs),
        sum(one.pool_seconds for one in needs),
        sum(one.alone for one in slowed) / parallel.side_by_side,
    )


def _slowed_by_others(
    fleets: Fleets, needs: Sequence[FleetNeeds], side_by_side: int
) -> list[FleetNeeds]:
    """The needs, with updates slowed by other fleets' use of the device.

    Fleets at the same position train at the same time, for as long as the shorter one takes, if
    that many train side by side.
    """
    positions = [fleet[0].position for fleet in fleets]
    alone = [one.alone for one in needs]

    def load(number: int) -> float:
        """The share of a fleet's time for which others use the device."""
        loads = [
            other.update_seconds * other.occupancy / max(alone[number], alone[index])
            for index, other in enumerate(needs)
            if index != number and positions[index] == positions[number] and alone[index]
        ]
        return sum(loads) * min(1.0, (side_by_side - 1) / max(1, len(loads)))

    return [
        replace(one, update_seconds=one.update_seconds * (1 + load(number)))
        for number, one in enumerate(needs)
    ]


def seconds_in_processes(
    fleets: Fleets, needs: Sequence[FleetNeeds], parallel: Parallelism
) -> float:
    """Time of all fleets, each in its own process, as `launch/order.py` starts them.

    A device that several processes share may be the bottleneck.
    """
    waiting = list(zip(fleets, needs, strict=True))
    device = sum(one.device_seconds for one in needs) / parallel.devices
    undone = {segment.id for fleet in fleets for segment in fleet}
    now, running = 0.0, list[tuple[float, list[str]]]()  # by their ends
    while waiting:
        for fleet, one in list(waiting):
            parents = {parent.id for segment in fleet for parent in segment.parents}
            if len(running) < parallel.processes and not parents & undone:
                waiting.remove((fleet, one))
                heappush(running, (now + one.alone, [segment.id for segment in fleet]))
        now, ended = heappop(running)
        undone -= set(ended)
    return max(device, max((end for end, _ in running), default=now))


def steps_left(fleets: Fleets, needs: Sequence[FleetNeeds], resumed: Left) -> dict[str, int]:
    """Steps left of every segment, some of which are resumed.

    A segment may have fewer steps than its task, if an expert made the others.
    """
    return {
        segment.id: min(one.steps // len(fleet), resumed.get(segment.id, segment.steps))
        for fleet, one in zip(fleets, needs, strict=True)
        for segment in fleet
    }


def planned_seconds(
    fleets: Fleets,
    needs: Sequence[FleetNeeds],
    parallel: Parallelism,
    left: Left,
    ended: Ended | None = None,
) -> float:
    """Time that the rest of these fleets takes."""
    rest = [
        (fleet, _rest(fleet, one, left, ended or {}))
        for fleet, one in zip(fleets, needs, strict=True)
        if any(segment.id in left for segment in fleet)
    ]
    seconds = seconds_in_processes if parallel.processes else seconds_together
    return seconds([fleet for fleet, _ in rest], [one for _, one in rest], parallel)


def _rest(fleet: Sequence[Segment], needs: FleetNeeds, left: Left, ended: Ended) -> FleetNeeds:
    """The rest of a fleet's needs; a task's end comes after its last step."""
    steps = [left[segment.id] for segment in fleet if segment.id in left]
    ends = [1 - ended.get(segment.id, 0.0) for segment in fleet if segment.id in left]
    share = sum(steps) / needs.steps
    return replace(
        needs,
        update_seconds=share * needs.update_seconds,
        collect_seconds=share * needs.collect_seconds,
        pool_seconds=share * needs.pool_seconds,
        end_seconds=needs.end_seconds * sum(ends) / len(fleet),
        start_seconds=needs.start_seconds if sum(steps) == needs.steps else 0.0,
    )
