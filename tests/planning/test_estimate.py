"""Which fleets fit into memory; what compilation adds to the time of a plan."""

import gc
import weakref
from dataclasses import replace

import pytest
import torch
from planned_fleet import ROWS, fleet_of

from cwbench.planning import estimate
from cwbench.planning.costs import SCRATCH_BYTES, Costs, Times
from cwbench.planning.fleet_time import FleetNeeds
from cwbench.planning.plan import Plan, groups_on_cuda
from cwbench.planning.rehearsal import Rehearsal
from cwbench.planning.sizes import bare_method
from cwbench.spec.config import GymnasiumConfig, PointMassConfig, ScheduleConfig
from cwbench.spec.schedule import milestones
from cwbench.spec.segment import Segment
from cwbench.spec.tasks import Task
from cwbench.spec.transition import Dims


def test_a_run_too_large_for_its_device_keeps_its_replay_on_the_host(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Planned as for a GPU; the free memory of both is made up, what a fleet needs is not."""
    fleet, kind = fleet_of("finetuning")
    costs = Costs({"finetuning": kind}, torch.device("cuda"))
    replay = costs.replay_bytes(fleet[:1])
    tensors = costs.group_bytes(fleet[:1]) - replay
    assert replay == ROWS * 116  # 29 numbers of 4 bytes

    def fits(runs: int, on_device: int, on_host: int) -> bool:
        free = {"cuda": on_device, "cpu": on_host}
        monkeypatch.setattr(estimate, "free_bytes", lambda place, processes: free[place.type])
        return estimate.Memory(costs, groups_on_cuda, processes=0).fits(fleet[:runs])

    both = 2 * (tensors + replay - SCRATCH_BYTES)  # two runs of one fleet share two workspaces
    assert fits(2, both, 0) and not fits(2, both - 1, both)
    assert fits(1, tensors, replay)
    assert not fits(1, tensors - 1, replay) and not fits(1, tensors, replay - 1)


def test_tasks_with_horizons_of_their_own_are_evaluated_for_as_long() -> None:
    """Two tasks of 20 steps and one of 200, one evaluation of 3 episodes at each task's end."""
    fleet, kind = fleet_of("finetuning")
    tasks = tuple(
        Task(name, "Pendulum-v1", horizon=steps, obs_size=3, action_size=1)
        for name, steps in (("a", 20), ("b", 200), ("c", 20))
    )
    env = GymnasiumConfig(horizon=200, obs_size=3, action_size=1, tasks=tasks)
    schedule = ScheduleConfig(steps_per_task=1000, eval_every=1000, eval_episodes=3)
    setup = replace(fleet[0].setup, env=env, schedule=schedule)
    segments = [Segment(setup, 0, ("a", "b", "c")[:length]) for length in (1, 2, 3)]
    plan = Plan((), tuple(segments), frozenset(), tuple((segment,) for segment in segments))
    costs = Costs({"finetuning": kind}, torch.device("cpu"))
    found = estimate.estimate(plan, costs, 1, measure=False)
    assert found.eval_steps == 3 * (20 + 220 + 240)


def test_each_shape_of_fleet_is_compiled_or_loaded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fleets of three, three and two runs: two shapes. An update takes a millisecond.

    On a CPU nothing is compiled ahead: either shape takes as long.
    """
    fleet, kind = fleet_of("finetuning")
    seeds = [replace(segment, seed=6) for segment in fleet[:2]]
    fleets = (tuple(fleet[:3]), tuple(fleet[3:]), tuple(seeds))
    plan = Plan((), tuple(fleet), frozenset(), fleets)
    monkeypatch.setattr(Costs, "times", lambda costs, fleet: Times(0.001, 0.0, 0.0, 0.0))

    def seconds(device: str, compiled: bool) -> float:
        costs = Costs({"finetuning": kind}, torch.device(device), compiled=compiled)
        return estimate.estimate(plan, costs, 1).seconds or 0.0

    for device, added in (("cuda", 25 + 7), ("cpu", 2 * 40)):
        assert seconds(device, True) - seconds(device, False) == pytest.approx(added)


def test_groups_of_a_fleet_update_one_after_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """An update of any number of runs takes 2 ms and 1 ms for each: 18 runs as two groups of 9.

    The device has room for others while a group of 9 updates.
    """
    fleet, kind = fleet_of("finetuning")
    runs = tuple(replace(fleet[0], seed=seed) for seed in range(18))
    plan = Plan((), runs, frozenset(), (runs,))

    def times(costs: Costs, fleet: tuple[Segment, ...]) -> Times:
        return Times(0.002 + 0.001 * len(fleet), 0.0, 0.0, 0.0, end=len(fleet))

    monkeypatch.setattr(Costs, "times", times)
    costs = Costs({"finetuning": kind}, torch.device("cuda"))
    found = estimate.estimate(plan, costs, 1, grouping=groups_on_cuda)
    [needs] = found.fleets
    assert needs.update_seconds == pytest.approx(found.updates / 18 * 2 * 0.011)
    assert (needs.groups, needs.end_seconds, needs.occupancy) == (2, 18, 9 / 50)


def test_workers_keep_an_environment_for_each_episode_of_each_task() -> None:
    """Of 10 episodes of two tasks and one more that trains, 3 MiB each; or of point masses.

    Each task of a single run is evaluated by one of the workers.
    """
    fleet, _ = fleet_of("finetuning")
    assert fleet[0].setup.schedule.eval_episodes == 10
    pairs = [replace(fleet[0], tasks=tasks) for tasks in (("push",), ("push", "hammer", "push"))]
    bare = estimate.PROCESS_BYTES + 2 * estimate.WORKER_BYTES
    assert estimate.process_bytes(pairs, 2, runs=8) == bare + 2 * 21 * (3 << 20)
    assert estimate.process_bytes(pairs, 2, runs=1) == bare + (20 + 2) * (3 << 20)
    schedule = ScheduleConfig(eval_episodes=10_000)
    points = replace(fleet[0].setup, env=PointMassConfig(), schedule=schedule)
    few = estimate.process_bytes([Segment(points, 0, ("reach-0-1",))], 2, runs=8) - bare
    assert few < 20 << 20


@pytest.mark.parametrize("step", [1, 2000, 2001, 2999])
def test_a_resumed_fleet_makes_what_is_left(step: int) -> None:
    """Counted from the milestones that come after the snapshot."""
    fleet, kind = fleet_of("finetuning")
    schedule = ScheduleConfig(steps_per_task=3000, eval_every=1000)
    first = Segment(replace(fleet[0].setup, schedule=schedule), 0, ("push",))
    plan = Plan((), (first,), frozenset(), ((first,),))
    costs, left = Costs({"finetuning": kind}, torch.device("cpu")), {first.id: 3000 - step}
    found = estimate.estimate(plan, costs, 1, measure=False, resumed=left)
    to_come = [one for one in milestones(schedule, 3000) if one.step > step]
    assert found.updates == sum(one.updates for one in to_come)
    assert found.eval_steps == sum(one.evaluate for one in to_come) * 10 * 200


def test_fleets_share_nine_tenths_of_what_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a GPU without what libraries take, on the host without the processes."""
    _, kind = fleet_of("finetuning")
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (100 << 30, 140 << 30))
    monkeypatch.setattr(estimate, "available_bytes", lambda: 10 << 30)
    for device, free in (("cuda", (90 << 30) - (1 << 30)), ("cpu", (9 << 30) - (2 << 30))):
        costs = Costs({"finetuning": kind}, torch.device(device))
        memory = estimate.Memory(costs, groups_on_cuda, processes=2 << 30, fleets=3)
        assert memory.free == free // 3


def test_memory_is_that_of_the_largest_fleets_at_one_position() -> None:
    """Fleets of other positions come before or after these."""
    second = fleet_of("finetuning")[0][:1]
    first = [segment.parent for segment in second if segment.parent]
    needs = [FleetNeeds(1, bytes=size) for size in (5, 2, 4, 3, 6)]
    fleets = [first, first, first, second, second]
    found = [estimate._bytes_together(fleets, needs, count) for count in (1, 2, 3, 5)]
    assert found == [6, 9, 11, 11]


def test_what_all_runs_of_a_fleet_take_is_counted() -> None:
    """Twenty evaluations of 10 episodes of 200 steps, of each task seen."""
    fleet, kind = fleet_of("finetuning")
    schedule = ScheduleConfig(steps_per_task=2000, eval_every=100)
    runs = [replace(one, setup=replace(one.setup, schedule=schedule)) for one in fleet[:3]]
    costs = Costs({"finetuning": kind}, torch.device("cpu"))
    counted = []
    for some in (runs[:1], runs):
        plan = Plan((), tuple(some), frozenset(), (tuple(some),))
        found = estimate.estimate(plan, costs, 1, measure=False)
        counted.append((found.steps, found.eval_steps, found.disk_bytes))
    assert counted[0][:2] == (2000, 20 * 10 * 2 * 200)
    assert counted[1] == tuple(3 * number for number in counted[0])
    trainer = bare_method(fleet[0], kind, Dims(12, 4)).trainer
    trainer.start()
    kept = sum(tensor.nbytes for tensor in trainer.state().values())
    assert counted[0][2] == pytest.approx(kept, abs=100)  # but for temperatures and scales


def test_workers_keep_the_environments_of_the_longest_evaluation() -> None:
    fleet, _ = fleet_of("finetuning")
    setups = [
        replace(fleet[0].setup, schedule=ScheduleConfig(eval_episodes=count)) for count in (10, 2)
    ]
    both = [Segment(setup, 0, ("push",)) for setup in setups]
    assert estimate.process_bytes(both, 2, runs=8) == estimate.process_bytes(both[:1], 2, runs=8)


def test_memory_is_free_once_rehearsals_have_given_it_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A trainer and its method refer to each other; torch keeps what is freed."""
    fleet, kind = fleet_of("finetuning")
    steps: list[str] = []

    def look(device: torch.device) -> tuple[int, int]:
        assert rehearsal() is None
        steps.append("look")
        return 10 << 30, 20 << 30

    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: steps.append("empty"))
    monkeypatch.setattr(torch.cuda, "mem_get_info", look)
    gc.disable()
    try:
        rehearsal = weakref.ref(Rehearsal(fleet[:1], kind, Dims(12, 4), torch.device("cpu")))
        assert rehearsal() is not None
        estimate.free_bytes(torch.device("cuda"), 0)
    finally:
        gc.enable()
    assert steps == ["empty", "look"]


def test_collection_is_hidden_by_a_lag_where_updates_leave_cores_for_it() -> None:
    """On a GPU; nothing is measured, so no GPU is needed."""
    fleet, kind = fleet_of("finetuning")
    for device, lag, hidden in (("cuda", 1, 1), ("cuda", 0, 0), ("cpu", 1, 0)):
        schedule = replace(fleet[0].setup.schedule, lag=lag)
        segment = replace(fleet[0], setup=replace(fleet[0].setup, schedule=schedule))
        plan = Plan((), (segment,), frozenset(), ((segment,),))
        costs = Costs({"finetuning": kind}, torch.device(device))
        [needs] = estimate.estimate(plan, costs, 1, measure=False).fleets
        assert needs.lag == hidden, (device, lag)
