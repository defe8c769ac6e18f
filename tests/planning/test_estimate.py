"""The plan's memory against what a fleet really holds."""

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from cwbench import methods
from cwbench.learner.method import Method
from cwbench.learner.trainer import Trainer
from cwbench.planning import estimate
from cwbench.planning.estimate import kept_bytes, replay_bytes
from cwbench.planning.plan import Plan, groups_on_cuda
from cwbench.planning.time_cache import TimeCache
from cwbench.spec.config import GROUPS
from cwbench.spec.options import resolve
from cwbench.spec.schedule import longest_share
from cwbench.spec.segment import Segment, Setup
from cwbench.spec.transition import Dims


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("finetuning", {}),
        ("recall", {}),
        ("recall-release", {}),
        ("pm", {"replay_mode": "offline"}),
        ("pm", {"replay_mode": "online"}),
        ("multitask", {}),
    ],
)
def test_replay_takes_what_the_plan_says(
    name: str, options: dict[str, str], toy_run: Any, tmp_path: Path
) -> None:
    store, plan, _ = toy_run(tmp_path, name, options=options)
    for segment in plan.segments:
        trainer = Trainer(
            [0],
            segment.position,
            dims=(12, 4),
            sac=segment.setup.sac,
            network=segment.setup.network,
            schedule=segment.setup.schedule,
            device=torch.device("cpu"),
        )
        method = methods.load(name)[1].method(segment.setup.options, trainer)
        folder = store.folder(segment)
        status = json.loads((folder.path / "status.json").read_text())
        assert status["resources"]["replay_bytes"] == replay_bytes([segment], method, Dims(12, 4))
        if method.keeps_replay:
            files = list(folder.replay.glob("*.npy"))
            headers = 128 * len(files)  # of the format
            on_disk = sum(file.stat().st_size for file in files) - headers
            assert on_disk == kept_bytes(segment, method, Dims(12, 4), segment.position + 1)


MEASURE = """
import sys, torch
from pathlib import Path
from test_estimate import ROWS, RUNS, fleet_of

from cwbench import methods
from cwbench.planning.estimate import Costs
from cwbench.planning.rehearsal import Rehearsal
from cwbench.learner.replay import OldTask, Replay

def resident(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(name))

torch.set_num_threads(1)
torch.backends.mkldnn.enabled = False
fleet, kind = fleet_of(sys.argv[1])
costs = Costs({fleet[0].setup.method: kind}, torch.device("cpu"))
predicted = costs.fleet_bytes(fleet)  # also loads all that an update needs
before = resident("VmRSS")
trainer = Rehearsal(fleet, kind, (12, 4), torch.device("cpu"))
old = {}
if kind.keeps_replay or trainer.method.keeps_replay:
    names = {name: x.shape[1] for name, x in trainer.replay.annotations.items()}
    columns = {name: torch.ones(1, width).expand(ROWS, width) for name, width in names.items()}
    shards = [torch.ones(1, 29).expand(ROWS, 29)] * RUNS  # of as many different parents
    old = {0: OldTask(shards, list(range(RUNS)), [columns] * RUNS)}
trainer.replay = Replay(RUNS, ROWS, (12, 4), trainer.streams, live=[1], old=old)
for start in range(0, ROWS, 1000):
    trainer.replay.add(1, torch.randn(RUNS, 1000, 29))
trainer.train(5)
print(predicted, resident("VmHWM") - before)
"""
RUNS, ROWS = 6, 60_000


def fleet_of(name: str) -> tuple[list[Segment], type[Method[Any]]]:
    """The second task of several runs, with the published networks."""
    base, entry = methods.load(name)
    layers = ({"buffer_size": ROWS, "steps_per_task": ROWS}, entry.options, entry.method.preset)
    groups: dict[str, Any] = {key: resolve(group, *layers) for key, group in GROUPS.items()}
    setup = Setup(base, resolve(entry.method.config_class, *layers), **groups)
    return [Segment(setup, seed, ("push", "push")) for seed in range(RUNS)], entry.method


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads Linux's accounts")
@pytest.mark.parametrize(
    "name",
    [
        "finetuning",
        "recall",
        pytest.param("ewc", marks=pytest.mark.slow),
        pytest.param("perfect-memory", marks=pytest.mark.slow),
    ],
)
def test_a_fleet_takes_the_memory_that_was_predicted(name: str) -> None:
    """What the operating system counts, in a process that does nothing else."""
    folders = [Path(__file__).parent, Path(__file__).parent.parent.parent]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, folders))}
    # The C library keeps freed blocks below this size; large ones it gives back at once.
    environment["MALLOC_MMAP_THRESHOLD_"] = "65536"
    made = subprocess.run(
        [sys.executable, "-c", MEASURE, name], capture_output=True, text=True, env=environment
    )
    assert made.returncode == 0, made.stderr
    predicted, measured = map(int, made.stdout.split())
    print(name, predicted / 2**20, measured / 2**20, predicted / measured)
    # Too little would end in an out-of-memory error; the C library may hold some blocks back.
    assert 0.85 * measured < predicted < 1.25 * measured


def test_tasks_that_take_turns_share_the_steps() -> None:
    assert longest_share(1000, 1, 200) == 1000
    assert longest_share(1800, 3, 200) == 600
    assert longest_share(1000, 3, 200) == 400  # episodes 0 1 2 0 1: two of the first task
    assert longest_share(100, 3, 200) == 100


def test_a_run_too_large_for_its_device_keeps_its_replay_on_the_host(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Planned as for a GPU; the free memory of both is made up, what a fleet needs is not."""
    fleet, kind = fleet_of("finetuning")
    costs = estimate.Costs({"finetuning": kind}, torch.device("cuda"))
    replay = costs.replay_bytes(fleet[:1])
    tensors = costs.fleet_bytes(fleet[:1]) - replay
    assert replay == ROWS * 116  # 29 numbers of 4 bytes

    def fits(runs: int, on_device: int, on_host: int) -> bool:
        free = {"cuda": on_device, "cpu": on_host}
        monkeypatch.setattr(estimate, "free_bytes", lambda place, workers: free[place.type])
        return estimate.Memory(costs, 1, groups_on_cuda).fits(fleet[:runs])

    both = 2 * (tensors + replay) - estimate.SCRATCH_BYTES  # two runs of one fleet share it
    assert fits(2, both, 0) and not fits(2, both - 1, both)
    assert fits(1, tensors, replay)
    assert not fits(1, tensors - 1, replay) and not fits(1, tensors, replay - 1)


def test_a_device_that_works_later_is_timed_without_its_warm_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On a clock of its own: asking takes no time, and every call is a second of work."""
    asked, now = [0], [0]

    def work_off() -> None:
        now[0] += asked[0]
        asked[0] = 0

    def ask() -> None:
        asked[0] += 1

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "synchronize", work_off)
    monkeypatch.setattr("cwbench.planning.estimate.time.perf_counter", lambda: now[0])
    assert estimate.seconds_per_call(ask, 0) == 1


def needs(updates: float, workers: float, pool: float) -> estimate.FleetNeeds:
    return estimate.FleetNeeds(
        1, 1, 1, bytes=1, disk_bytes=1,
        update_seconds=updates, collect_seconds=workers, pool_seconds=pool,
    )  # fmt: skip


def test_a_group_updates_while_others_collect() -> None:
    alone = needs(10, 6, 1)
    assert alone.alone == 16
    assert dataclasses.replace(alone, groups=3).alone == 12
    assert dataclasses.replace(alone, groups=3, pool_seconds=14).alone == 14  # and evaluation


def test_side_by_side_what_is_needed_most_decides() -> None:
    """Two runs of two tasks, and a fleet of its own."""
    fleet, _ = fleet_of("finetuning")
    second = fleet[:2]
    first = [segment.parent for segment in second if segment.parent]
    other = [dataclasses.replace(segment, seed=9) for segment in first]
    fleets = [first, other, second]

    def seconds(side_by_side: int, *each: tuple[float, float, float]) -> float:
        found = [needs(*one) for one in each]
        return estimate.seconds_together(fleets, found, side_by_side)

    assert seconds(1, (10, 5, 1), (20, 5, 1), (10, 5, 1)) == 55  # one after another
    assert seconds(3, (10, 5, 1), (20, 5, 1), (10, 5, 1)) == 30  # the chain of two tasks
    assert seconds(3, (10, 5, 1), (50, 5, 1), (10, 5, 1)) == 55  # the long fleet
    assert seconds(3, (10, 5, 20), (10, 5, 20), (10, 5, 20)) == 60  # workers
    large = [[segment] * 100 for segment in (first[0], other[0], second[0])]
    found = [needs(10, 1, 1)] * 3
    assert estimate.seconds_together(large, found, 3) == 30  # the device, full with one of them
    assert seconds(2, (10, 5, 1), (40, 5, 1), (50, 5, 1)) == 70  # the chain again


def test_times_are_measured_once_on_a_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet, kind = fleet_of("finetuning")
    cpu = torch.device("cpu")

    def times() -> estimate.Times:
        cache = TimeCache(tmp_path / "folder" / "times.json", cpu)
        return estimate.Costs({"finetuning": kind}, cpu, cache=cache)._timed(fleet[0], 1)

    measured: list[int] = []

    def measure(self: estimate.Costs, first: Segment, runs: int) -> estimate.Times:
        measured.append(runs)
        return estimate.Times(0.5, 0.25, 3, 4)

    monkeypatch.setattr(estimate.Costs, "_measure", measure)
    assert times() == times() == estimate.Times(0.5, 0.25, 3, 4)
    assert len(measured) == 1
    monkeypatch.setattr("cwbench.planning.time_cache.platform.node", lambda: "another machine")
    assert times() == estimate.Times(0.5, 0.25, 3, 4) and len(measured) == 2
    (tmp_path / "folder" / "times.json").write_text("damaged")
    assert times() == estimate.Times(0.5, 0.25, 3, 4) and len(measured) == 3


def test_threads_are_measured_once_on_a_machine(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Two threads take half the time here."""
    segments, method_class = fleet_of("finetuning")
    plan = Plan((), (), frozenset(), ((segments[0],),))
    device = torch.device("cpu")
    cache = TimeCache(tmp_path / "times.json", device)
    asked = []

    def seconds(action: object, budget: float) -> float:
        asked.append(torch.get_num_threads())
        return 1 / asked[-1]

    monkeypatch.setattr(estimate, "cores", lambda: 2)
    monkeypatch.setattr(estimate, "seconds_per_call", seconds)
    for _ in range(2):
        costs = estimate.Costs({segments[0].setup.method: method_class}, device, cache=cache)
        assert estimate.pick_threads(plan, costs) == 2
    torch.set_num_threads(1)
    assert asked == [1, 2]
