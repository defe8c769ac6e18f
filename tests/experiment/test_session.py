"""A session without training: fleets, workers, what is recorded, what other processes are told."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch

from cwbench.experiment import build, resources, session
from cwbench.experiment.execution import Execution, Launching
from cwbench.experiment.listener import Silent
from cwbench.experiment.resources import Resources
from cwbench.experiment.session import Session
from cwbench.fleet.claiming import Outcome
from cwbench.launch import Command
from cwbench.launch.local import Local
from cwbench.planning.costs import Costs, Times
from cwbench.planning.estimate import STARTING_SECONDS, Estimate
from cwbench.planning.fleet_time import Parallelism
from cwbench.planning.plan import Plan, Run
from cwbench.rollout.pool import Pool
from cwbench.sequences import get
from cwbench.spec.errors import UserError
from cwbench.store import integrity
from cwbench.store.files import read_json
from cwbench.store.results import Store


def make_runs(seeds: int, method: str = "finetuning", **options: Any) -> list[Run]:
    sequence = get("point3")
    recorded, entry = build.load_method(method)
    setup = build.make_setup(recorded, entry, "demo", options, sequence)
    return [build.make_run(entry, method, setup, "demo", sequence, seed) for seed in range(seeds)]


def make_session(root: Path, method: str = "finetuning", **given: Any) -> Session:
    _, entry = build.load_method(method)
    given = {"execution": Execution(threads=1), "fits": lambda fleet: True, **given}
    return Session(Store(root), {method: entry.method}, device=torch.device("cpu"), **given)


def test_fleets_are_as_large_as_a_cpu_likes_or_as_asked(tmp_path: Path) -> None:
    runs = make_runs(10)
    plan = make_session(tmp_path).plan(runs)
    assert [len(fleet) for fleet in plan.fleets] == [5, 5] * 3  # at most eight
    asked = make_session(tmp_path, execution=Execution(fleet_size=4))
    assert max(map(len, asked.plan(runs).fleets)) <= 4
    assert not list(tmp_path.iterdir())


def test_workers_that_a_plan_does_not_start_need_no_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One run of mt10 with V1 rewards: 9 of its tasks have 25 MiB an environment, ten of each."""
    monkeypatch.setattr("cwbench.planning.machine.cores", lambda: 64)
    monkeypatch.setattr("cwbench.planning.estimate.available_bytes", lambda: 8 << 30)
    sequence, (method, entry) = get("mt10"), build.load_method("finetuning")
    setup = build.make_setup(method, entry, "compact", {}, sequence)
    runs = [build.make_run(entry, method, setup, "compact", sequence, seed) for seed in range(8)]
    one = make_session(tmp_path, fits=None)
    assert one.resources.workers(one.plan(runs[:1])) == 2
    with pytest.raises(UserError, match=r"the workers need .* GiB of memory and 7.2 GiB are free"):
        one.plan(runs)


def test_experiments_are_recorded_under_their_names(tmp_path: Path) -> None:
    runs = make_runs(2)
    make_session(tmp_path, command="cwbench run x").record({"mine": runs})
    [file] = tmp_path.glob("experiments/*.json")
    record = read_json(file)
    assert (record["name"], record["command"]) == ("mine", "cwbench run x")
    assert [run["seed"] for run in record["runs"]] == [0, 1]
    assert record["runs"][0]["segments"] == [segment.id for segment in runs[0].segments]


class Noted:
    """A launcher that starts nothing."""

    def __init__(self) -> None:
        self.commands: list[Command] = []

    def check(self) -> None: ...

    def launch(self, commands: Any, tell: Any) -> None:
        self.commands += commands

    def parallelism(self) -> Parallelism:
        return Parallelism(processes=1)


def test_other_processes_get_the_same_execution(tmp_path: Path) -> None:
    launcher = Noted()
    one = make_session(
        tmp_path,
        execution=Execution(workers=3, fleet_size=2),
        launching=Launching(launcher="print"),
    )
    assert one.launch(one.plan(make_runs(2)), launcher)
    assert [command.job.level for command in launcher.commands] == [0, 1, 2]
    for command in launcher.commands:
        assert (
            command.arguments[:2] == ["train", str(command.job.file)] and command.job.file.is_file()
        )
        assert "--workers=3" in command.arguments and "--trust" not in command.arguments


def test_a_session_sets_nothing_up_for_another_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--launcher print --device cuda` plans for a GPU that is not here."""
    monkeypatch.setattr(resources, "torch_set_up", lambda execution: pytest.fail("set up"))
    runs = make_runs(1)
    segments = [segment for run in runs for segment in run.segments]
    made = session.open_session(
        tmp_path,
        {},
        segments,
        execution=Execution(device="cuda"),
        launching=Launching(launcher="slurm"),
    )
    assert made.device.type == "cuda" and not made.resources.here
    assert made.plan(runs).missing == 3


class Warned(Silent):
    def __init__(self) -> None:
        self.lines: list[str] = []

    def warn(self, text: str) -> None:
        self.lines.append(text)


@pytest.mark.usefixtures("without_compilers")
def test_without_a_compiler_updates_are_not_compiled_and_the_record_says_so(
    tmp_path: Path, toy_pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Resources, "set_threads", lambda self, plan: None)
    first, warned = make_runs(1, steps_per_task=60, update_after=20)[0].segments[0], Warned()
    methods = {"finetuning": build.load_method("finetuning")[1].method}
    execution = Execution(device="cpu", compile=True)
    one = session.open_session(tmp_path, methods, [first], execution=execution, listener=warned)
    assert warned.lines == [
        "updates are not compiled: no C++ compiler; install one, e.g. the package g++"
    ]
    assert one.train(one.plan((), [first]), toy_pool).good
    record = read_json(one.store.folder(first).path / "segment.json")
    assert record["device"]["compiled"] is False
    assert not one.resources.costs.compiled
    assert "--no-compile" in one.execution.arguments()  # for processes on this machine


@pytest.mark.usefixtures("without_compilers")
def test_another_machine_looks_for_its_own_compiler(tmp_path: Path) -> None:
    segments, warned = make_runs(1)[0].segments, Warned()
    slurm, execution = Launching(launcher="slurm"), Execution(device="cpu", compile=True)
    one = session.open_session(
        tmp_path, {}, segments, execution=execution, launching=slurm, listener=warned
    )
    assert "--compile" in one.execution.arguments() and not warned.lines


def test_a_resumed_segment_takes_what_is_left_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three tasks of equal cost, the first of them half done."""
    monkeypatch.setattr(Costs, "times", lambda self, fleet: Times(1.0, 0.0, 0.0, 0.0))
    one, runs = make_session(tmp_path), make_runs(1)
    whole = one.estimate(one.plan(runs))
    first = runs[0].segments[0]
    monkeypatch.setattr(
        integrity, "snapshot_step", lambda folder: 750 * (folder == one.store.folder(first))
    )
    resumed = one.estimate(one.plan(runs))
    assert whole.seconds == 3 * 1250  # updates of a second each, after 250 steps
    assert resumed.seconds == 2.5 * 1250
    assert (whole.steps, resumed.steps) == (3 * 1500, 2.5 * 1500)
    # Of the first task's updates, those after steps 251, 276, ..., 726 are made: 20 rounds of 25.
    assert whole.updates - resumed.updates == 500
    schedule = first.setup.schedule
    assert (schedule.update_after, schedule.update_every, schedule.eval_every) == (250, 25, 250)
    # Three of its evaluations, of one task.
    assert whole.eval_steps - resumed.eval_steps == 3 * schedule.eval_episodes * 25
    assert "1 segment goes on at step 750 of 1,500" in one.describe(one.plan(runs), resumed)


def test_a_plan_is_divided_among_the_processes_of_a_launcher(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three runs of three tasks of 1,250 s, in fleets of one, and two processes."""
    monkeypatch.setattr(Costs, "times", lambda self, fleet: Times(1.0, 0.0, 0.0, 0.0))
    one = make_session(tmp_path, execution=Execution(threads=1, fleet_size=1))
    one.__dict__["launcher"] = Local(["0", "1"], cores=6)
    plan = one.plan(make_runs(3))
    needs = one.estimate(plan)
    # Tasks are started in the plan's order: 2, then 2, ..., and one is left.
    assert needs.seconds == 5 * (1250 + STARTING_SECONDS)
    assert (
        "9 to train in 9 fleets on cpu, 2 processes with 2 workers each"
        in (one.describe(plan, needs)[0])
    )
    assert one._forecast(plan, needs).planned(one._forecast(plan, needs).left) == needs.seconds


@pytest.mark.parametrize(
    ("workers", "fleets", "seconds"),
    [(1, 1, 900), (2, 1, 900 / 2), (4, 1, 900 / 2), (2, 3, 900 / 2)],
)
def test_no_more_workers_step_than_there_are_cores(
    workers: int, fleets: int, seconds: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three runs of 300 steps in one task, a second each; there are two cores."""
    monkeypatch.setattr("cwbench.planning.machine.cores", lambda: 2)
    monkeypatch.setattr(Costs, "times", lambda self, fleet: Times(0.0, 1.0, 0.0, 0.0))
    execution = Execution(threads=1, workers=workers, side_by_side=fleets)
    one, runs = make_session(tmp_path, execution=execution), make_runs(3, steps_per_task=300)
    needs = one.estimate(one.plan([], [run.segments[0] for run in runs]))
    assert needs.seconds == pytest.approx(seconds + needs.eval_steps / min(workers, 2))


def test_fleets_side_by_side_on_a_cpu_update_in_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three fleets of one run: 1,250 updates of a second each cannot overlap."""
    monkeypatch.setattr(Costs, "times", lambda self, fleet: Times(1.0, 0.0, 0.0, 0.0))
    one = make_session(tmp_path, execution=Execution(threads=1, fleet_size=1, side_by_side=3))
    plan = one.plan([], [run.segments[0] for run in make_runs(3)])
    assert len(plan.fleets) == 3 and one.estimate(plan).seconds == 3 * 1250


def test_plan_and_progress_name_the_same_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Experts make all 1,500 steps of three tasks, the method itself a tenth of each."""
    monkeypatch.setattr(Costs, "times", lambda self, fleet: Times(1.0, 0.0, 0.0, 0.0))
    one = make_session(tmp_path, "reset-distill")
    plan = one.plan(make_runs(2, "reset-distill"))
    needs = one.estimate(plan)
    assert needs.steps == 2 * 3 * (1500 + 150)
    for forecast in (one._forecast(plan, needs), one._forecast(plan)):
        assert forecast.steps == sum(forecast.left.values()) == needs.steps


@pytest.mark.parametrize("estimated", [True, False])
def test_threads_are_chosen_once(
    estimated: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes half a second, which an estimate has spent already."""
    chosen: list[int] = []

    def pick(plan: Plan, costs: Costs, most: int) -> int:
        chosen.append(most)
        return 1

    monkeypatch.setenv("CWBENCH_CORES", "8")
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    trained = SimpleNamespace(run=lambda plan, pool, progress: Outcome())
    monkeypatch.setattr("cwbench.planning.costs.pick_threads", pick)
    monkeypatch.setattr(Costs, "times", lambda self, fleet: Times(1.0, 0.0, 0.0, 0.0))
    monkeypatch.setattr(Session, "_runner", lambda self, plan: trained)
    one = make_session(tmp_path, execution=Execution())
    plan = one.plan(make_runs(1))
    needs = one.estimate(plan) if estimated else None
    one.train(plan, cast(Pool, object()), estimate=needs)
    assert chosen == [3]


def test_torch_is_set_up_for_training_and_only_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The settings of the process that plans and trains are its own."""
    inside: list[tuple[object, int]] = []

    def settings() -> tuple[object, int]:
        return torch.backends.mkldnn.enabled, torch.get_num_threads()

    def run(*given: object) -> Outcome:
        inside.append(settings())
        return Outcome()

    def times(self: Costs, fleet: object) -> Times:
        run()
        return Times(1.0, 0.0, 0.0, 0.0)

    monkeypatch.setattr(Costs, "times", times)
    monkeypatch.setattr(Session, "_runner", lambda self, plan: SimpleNamespace(run=run))
    one = make_session(tmp_path, execution=Execution(threads=2))
    monkeypatch.setattr(torch.backends.mkldnn, "enabled", True)
    plan = one.plan(make_runs(1))
    one.train(plan, cast(Pool, object()), estimate=one.estimate(plan))
    assert settings() == (True, 1)
    assert set(inside) == {(False, 2)} and len(inside) > 1


def test_a_damaged_snapshot_does_not_stop_a_plan(tmp_path: Path) -> None:
    """Training says so, and goes on with the others."""
    one, runs = make_session(tmp_path), make_runs(2)
    damaged = one.store.folder(runs[0].segments[0]).snapshot
    damaged.parent.mkdir(parents=True)
    damaged.write_text("damaged")
    plan = one.plan(runs)
    needs = Estimate(1, 1, 1, 1, 0, 1, None)
    assert plan.missing == 6
    assert one.describe(plan, needs)[0].startswith("2 runs = 6 segments, 0 done, 6 to train")


def test_fleets_side_by_side_share_what_was_free_before_the_first_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three fleets of which two fit. The first one takes its share before others are looked at."""
    options = Execution(threads=1, fleet_size=1, side_by_side=3)
    one = make_session(tmp_path, fits=None, execution=options)
    plan = one.plan(make_runs(3))
    first, second, third = plan.fleets[:3]
    need = one.resources.memory(plan.fleets).needed(first)
    free = [2 * need]
    monkeypatch.setattr("cwbench.planning.estimate.free_bytes", lambda device, processes: free[0])
    room = one._room(plan)
    free[0] -= need
    assert room([first, second]) and not room([first, second, third])
