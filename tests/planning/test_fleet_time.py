"""How long several fleets take, with made-up times of each."""

import dataclasses

from planned_fleet import fleet_of

from cwbench.planning.fleet_time import (
    FleetNeeds,
    Parallelism,
    planned_seconds,
    seconds_in_processes,
    seconds_together,
)
from cwbench.spec.segment import Segment


def needs(updates: float, workers: float, pool: float) -> FleetNeeds:
    return FleetNeeds(
        1, 1, 1, bytes=1, disk_bytes=1,
        update_seconds=updates, collect_seconds=workers, pool_seconds=pool,
    )  # fmt: skip


def test_a_group_updates_while_others_collect() -> None:
    alone = needs(10, 6, 1)
    assert alone.alone == 16
    assert dataclasses.replace(alone, groups=3).alone == 12
    assert dataclasses.replace(alone, groups=3, pool_seconds=14).alone == 14  # and evaluation


def test_with_a_lag_a_fleet_collects_while_it_updates() -> None:
    assert dataclasses.replace(needs(10, 6, 1), lag=1).alone == 10
    assert dataclasses.replace(needs(6, 10, 1), lag=1).alone == 10
    assert dataclasses.replace(needs(6, 10, 14), lag=1).alone == 14


def chain_and_another() -> list[list[Segment]]:
    """The two tasks of two runs, with a fleet of its own between them."""
    second = fleet_of("finetuning")[0][:2]
    first = [segment.parent for segment in second if segment.parent]
    return [first, [dataclasses.replace(segment, seed=9) for segment in first], second]


def test_side_by_side_what_is_needed_most_decides() -> None:
    """Two runs of two tasks, and a fleet of its own."""
    fleets = chain_and_another()

    def seconds(side_by_side: int, *each: tuple[float, float, float]) -> float:
        found = [needs(*one) for one in each]
        small = [dataclasses.replace(one, occupancy=0.0) for one in found]
        return seconds_together(fleets, small, Parallelism(side_by_side))

    assert seconds(1, (10, 5, 1), (20, 5, 1), (10, 5, 1)) == 55  # one after another
    assert seconds(3, (10, 5, 1), (20, 5, 1), (10, 5, 1)) == 30  # the chain of two tasks
    assert seconds(3, (10, 5, 1), (50, 5, 1), (10, 5, 1)) == 55  # the long fleet
    assert seconds(3, (10, 5, 20), (10, 5, 20), (10, 5, 20)) == 60  # workers
    ends = [dataclasses.replace(needs(1, 1, 1), end_seconds=10)] * 3
    assert seconds_together(fleets, ends, Parallelism(3)) == 33  # no other trains at an end
    assert seconds(2, (10, 5, 1), (40, 5, 1), (50, 5, 1)) == 70  # the chain again


def test_updates_wait_for_those_of_fleets_at_the_same_position() -> None:
    """The first two fleets; the third starts when the first has ended, and is alone."""
    fleets = chain_and_another()
    found = [needs(10, 10, 0), needs(20, 20, 0), needs(10, 10, 0)]

    def seconds(occupancy: float) -> float:
        small = [dataclasses.replace(one, occupancy=occupancy) for one in found]
        return seconds_together(fleets, small, Parallelism(3))

    assert seconds(0.0) == 40
    # The second uses half of the device for 20 of 40 s, so the first fleet's 10 s become 12.5.
    assert seconds(0.5) == 12.5 + 10 + 20


def test_fleets_that_wait_for_their_turn_slow_no_others_down() -> None:
    """Sixteen fleets that fill the device half of their time: two at a time wait for one other."""
    first = fleet_of("finetuning")[0][0]
    fleets = [[dataclasses.replace(first, seed=seed)] for seed in range(16)]
    found = [needs(100, 100, 0)] * 16
    seconds = [seconds_together(fleets, found, Parallelism(n)) for n in (1, 2, 16)]
    assert seconds == [3200, 2000, 1600]


def test_processes_take_fleets_in_turn_after_their_parents() -> None:
    """Of 15, 30 and 20 seconds; the third starts from the first."""
    fleets = chain_and_another()

    def seconds(processes: int, *each: float, start: float = 0.0) -> float:
        parallel = Parallelism(processes=processes)
        share = parallel.occupancy("cpu", 1)
        found = [
            dataclasses.replace(needs(one, 0, 0), start_seconds=start, occupancy=share)
            for one in each
        ]
        return seconds_in_processes(fleets, found, parallel)

    assert seconds(1, 15, 30, 20) == 65
    assert seconds(2, 15, 30, 20) == 35  # the chain; the other fleet ends at 30
    assert seconds(2, 15, 50, 20) == 50  # the other fleet
    assert seconds(3, 15, 30, 20) == 35  # a third process has nothing to do
    assert seconds(2, 15, 30, 20, start=5) == 45  # each process starts
    assert seconds_in_processes([], [], Parallelism(processes=2)) == 0


def test_a_device_that_processes_share_limits_them() -> None:
    """Each of two fleets of 50 runs uses a device fully for 10 of its 15 seconds."""
    fleets = chain_and_another()[:2]
    shared, own = (Parallelism(processes=2, devices=devices) for devices in (1, 2))
    found = [dataclasses.replace(needs(10, 5, 1), occupancy=own.occupancy("cuda", 50))] * 2
    assert seconds_in_processes(fleets, found, shared) == 20
    assert seconds_in_processes(fleets, found, own) == 15
    assert (shared.fleets_per_device, own.fleets_per_device) == (2, 1)


def test_the_share_of_a_device_that_a_fleet_takes() -> None:
    assert [Parallelism(8).occupancy("cuda", runs) for runs in (5, 50, 100)] == [0.1, 1, 1]
    assert Parallelism(8).occupancy("cpu", 5) == 1  # one thread updates all of them
    assert Parallelism(processes=4).occupancy("cpu", 5) == 0.25


def test_a_fleet_under_way_has_started() -> None:
    fleets = chain_and_another()[:2]
    found = [FleetNeeds(2000, 0, 0, 0, 0, 100.0, 0.0, 0.0, start_seconds=30.0) for _ in fleets]
    left = {segment.id: 1000 for fleet in fleets for segment in fleet}
    one = Parallelism(processes=1)
    assert planned_seconds(fleets, found, one, left) == 260
    begun = left | {segment.id: 500 for segment in fleets[0]}
    assert planned_seconds(fleets, found, one, begun) == 50 + 130


def test_of_a_tasks_end_what_is_not_over_is_left() -> None:
    """100 s of updates and 10 s of the end, for two runs of 1,000 steps."""
    [fleet, *_] = chain_and_another()
    found = [FleetNeeds(2000, 0, 0, 0, 0, 100.0, 0.0, 0.0, end_seconds=10.0)]
    one, other = (segment.id for segment in fleet)
    alone = Parallelism()
    assert planned_seconds([fleet], found, alone, {one: 1000, other: 1000}) == 110
    assert planned_seconds([fleet], found, alone, {one: 0, other: 0}, {one: 0.5}) == 7.5
    assert planned_seconds([fleet], found, alone, {one: 0}, {one: 0.5}) == 2.5
