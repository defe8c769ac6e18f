"""Measured memory against what a fleet really holds; times are measured once."""

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
import torch
from planned_fleet import fleet_of

from cwbench.learner import Method, MethodConfig, option
from cwbench.planning import costs
from cwbench.planning.costs import Costs, Times, pick_threads
from cwbench.planning.plan import Plan
from cwbench.planning.rehearsal import Rehearsal
from cwbench.planning.time_cache import TimeCache
from cwbench.planning.timing import seconds_per_call
from cwbench.spec.segment import Segment
from cwbench.spec.transition import Dims

MEASURE = """
import sys, torch
from pathlib import Path
from planned_fleet import ROWS, RUNS, fleet_of

from cwbench import methods
from cwbench.planning.costs import Costs
from cwbench.planning.rehearsal import Rehearsal
from cwbench.spec.transition import Dims
from cwbench.learner.replay import OldTask, Replay

def resident(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(name))

torch.set_num_threads(1)
torch.backends.mkldnn.enabled = False
fleet, kind = fleet_of(sys.argv[1])
costs = Costs({fleet[0].setup.method: kind}, torch.device("cpu"))
predicted = costs.group_bytes(fleet)  # also loads all that an update needs
before = resident("VmRSS")
trainer = Rehearsal(fleet, kind, Dims(12, 4), torch.device("cpu"))
old = {}
if kind.keeps_replay or trainer.method.keeps_replay:
    names = {name: x.shape[1] for name, x in trainer.replay.annotations.items()}
    columns = {name: torch.ones(1, width).expand(ROWS, width) for name, width in names.items()}
    shards = [torch.ones(1, 29).expand(ROWS, 29)] * RUNS  # of as many different parents
    old = {0: OldTask(shards, list(range(RUNS)), [columns] * RUNS)}
trainer.replay = Replay(RUNS, ROWS, Dims(12, 4), trainer.streams, live=[1], old=old)
for start in range(0, ROWS, 1000):
    trainer.replay.add(1, torch.randn(RUNS, 1000, 29))
trainer.train(5)
print(predicted, resident("VmHWM") - before)
"""


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
    tests = Path(__file__).parents[1]
    folders = [tests / "helpers", tests.parent]
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
    monkeypatch.setattr("cwbench.planning.timing.time.perf_counter", lambda: now[0])
    assert seconds_per_call(ask, 0) == 1


def test_times_are_measured_once_on_a_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet, kind = fleet_of("finetuning")
    cpu = torch.device("cpu")

    def times() -> Times:
        cache = TimeCache(tmp_path / "folder" / "times.json", cpu)
        return Costs({"finetuning": kind}, cpu, cache=cache)._timed(fleet[0], 1)

    measured: list[int] = []

    def measure(self: Costs, first: Segment, runs: int) -> Times:
        measured.append(runs)
        return Times(0.5, 0.25, 3, 4)

    monkeypatch.setattr(Costs, "_measure", measure)
    assert times() == times() == Times(0.5, 0.25, 3, 4)
    assert len(measured) == 1
    monkeypatch.setattr("cwbench.planning.time_cache.platform.node", lambda: "another machine")
    assert times() == Times(0.5, 0.25, 3, 4) and len(measured) == 2
    (tmp_path / "folder" / "times.json").write_text("damaged")
    assert times() == Times(0.5, 0.25, 3, 4) and len(measured) == 3


def test_memory_is_rehearsed_again_when_the_code_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet, kind = fleet_of("finetuning")
    cpu, rehearsed = torch.device("cpu"), list[str]()

    def run_bytes(segment: Segment, *method: object) -> tuple[int, int]:
        rehearsed.append(segment.tasks[-1])
        return 1000, 50

    def memory(segment: Segment) -> float:
        cache = TimeCache(tmp_path / "times.json", cpu)
        return Costs({"finetuning": kind}, cpu, cache=cache)._run_bytes(segment)

    monkeypatch.setattr(costs, "run_bytes", run_bytes)
    assert [memory(segment) for segment in fleet[:3]] == [1050] * 3  # of any seed
    assert len(rehearsed) == 1
    monkeypatch.setattr(costs, "code_state", lambda: "changed")
    assert memory(fleet[0]) == 1050 and len(rehearsed) == 2


@pytest.mark.parametrize(("name", "last"), [("prognet", 20**2), ("ewc", 4 + 7 * 18)])
def test_memory_of_columns_with_laterals_grows_with_the_square(
    name: str, last: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Made up: the square of the number of tasks. Other methods are taken to lie on a line."""

    def run_bytes(segment: Segment, *method: object) -> tuple[int, int]:
        return len(segment.tasks) ** 2, 0

    monkeypatch.setattr(costs, "run_bytes", run_bytes)
    fleet, kind = fleet_of(name)
    measuring = Costs({fleet[0].setup.method: kind}, torch.device("cpu"))
    memory = [
        measuring._curve(replace(fleet[0], tasks=("push",) * n), measuring._run_bytes)
        for n in (1, 2, 5, 20)
    ]
    assert memory == pytest.approx([1, 4, 25, last])


@pytest.mark.parametrize(("of_one_thread", "picked"), [(0.5, 2), (0.9, 1), (1.5, 1)])
def test_all_threads_are_used_where_they_are_clearly_faster(
    of_one_thread: float, picked: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    segments, method_class = fleet_of("finetuning")
    plan = Plan((), (), frozenset(), ((segments[0],),))

    def seconds(action: object, budget: float) -> float:
        return 1.0 if torch.get_num_threads() == 1 else of_one_thread

    monkeypatch.setattr(costs, "seconds_per_call", seconds)
    measuring = Costs({segments[0].setup.method: method_class}, torch.device("cpu"))
    assert pick_threads(plan, measuring, 2) == picked
    assert torch.get_num_threads() == 1


@dataclass(frozen=True)
class SlowEndConfig(MethodConfig):
    samples: int = option(2560, "Each takes a second at a task's end.", minimum=1, rehearsal=1)


class SlowEnd(Method[SlowEndConfig]):
    """Takes its time at a task's end, on a clock of its own."""

    config_class = SlowEndConfig
    now: ClassVar[float] = 0.0

    def on_task_end(self, position: int) -> None:
        SlowEnd.now += self.config.samples
        self.trainer.retrain(1000, self._update)
        self.trainer.retrain(40)

    def _update(self) -> None:
        SlowEnd.now += 0.5


@pytest.fixture
def slow_clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.setattr("cwbench.planning.timing.time.perf_counter", lambda: SlowEnd.now)
        yield


@pytest.mark.usefixtures("slow_clock")
def test_the_end_of_a_task_takes_its_real_samples_and_updates() -> None:
    segments, _ = fleet_of("finetuning")
    setup = replace(segments[0].setup, options=SlowEndConfig())
    first = replace(segments[0], setup=setup, tasks=("push",))
    measuring = Costs({"finetuning": SlowEnd}, torch.device("cpu"))
    trainer = Rehearsal([first] * 2, SlowEnd, Dims(12, 4), torch.device("cpu"))
    # One run's samples on a CPU, for two runs; own updates as timed; SAC's at their price.
    assert measuring._task_end(trainer, first, 0.25) == (1040, 2 * 2560 + 500 + 10)


@pytest.mark.parametrize(
    ("interval", "captured", "before"),
    [(10, True, 40), (10, False, 4), (10_000, True, 4), (0, True, 4)],
)
def test_what_is_seldom_called_between_updates_is_not_waited_for(
    interval: int, captured: bool, before: int
) -> None:
    """Its capture would need forty thousand updates, of a plan that measures 2.5 seconds."""
    seen: list[int] = []
    method = SimpleNamespace(interval=interval, captures_interval=captured)
    trainer: Any = SimpleNamespace(device=torch.device("cuda"), method=method, train=seen.append)
    costs._seconds_per_update(trainer, 0.0)
    assert seen == [before, costs.CAPTURED, costs.CAPTURED]


def test_the_last_task_of_packnet_is_not_retrained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(costs, "_seconds_per_update", lambda trainer, budget: 0.0)
    monkeypatch.setattr(Costs, "_step_seconds", lambda self, first, trainer, budget: 0.0)
    segments, kind = fleet_of("packnet")
    measuring = Costs({"packnet": kind}, torch.device("cpu"))
    for length, updates in ((3, [6000, 6000, 0]), (2, [6000, 0])):
        run = [replace(segments[0], tasks=("push",) * n, length=length) for n in range(1, 4)]
        found = [measuring.times([segment]).retraining for segment in run[:length]]
        assert found == updates  # a tenth of 60,000 steps
        assert [measuring.retraining([segment]) for segment in run[:length]] == updates


@pytest.mark.parametrize(("steps", "seconds"), [(250_000, 1.3), (25_000, 1.15)])
def test_steps_take_longer_once_policies_touch_things(
    monkeypatch: pytest.MonkeyPatch, steps: int, seconds: float
) -> None:
    monkeypatch.setattr(costs, "seconds_per_call", lambda action, budget: 50 * 1.14)  # hammer's
    segments, kind = fleet_of("finetuning")
    schedule = replace(segments[0].setup.schedule, steps_per_task=steps)
    setup = replace(segments[0].setup, schedule=schedule)
    first = replace(segments[0], setup=setup, tasks=("hammer",))
    measuring = Costs({"finetuning": kind}, torch.device("cpu"))
    trainer = Rehearsal([first], kind, Dims(12, 4), torch.device("cpu"))
    assert measuring._step_seconds(first, trainer, 0.0) == pytest.approx(seconds)
