"""Workers that slow each other down, as estimates count them."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from planned_fleet import fleet_of

from cwbench import envs
from cwbench.planning import costs, estimate
from cwbench.planning.costs import Costs, Times
from cwbench.planning.crowding import SLOW, slowdown
from cwbench.planning.fleet_time import FleetNeeds, Parallelism
from cwbench.planning.plan import Plan
from cwbench.planning.time_cache import TimeCache
from cwbench.rollout.pool import WorkerError
from cwbench.spec.config import PointMassConfig


def test_slowdown_grows_with_every_busy_worker() -> None:
    assert [slowdown(1.6, busy, 4) for busy in (1, 2, 4, 9)] == pytest.approx([1, 1.2, 1.6, 1.6])
    assert slowdown(1.6, 1, 1) == 1


def test_a_step_takes_longer_where_all_workers_are_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step of 1 ms; with all eight workers busy, 1.7 ms. Neither updates nor evaluations."""
    fleet, kind = fleet_of("finetuning")
    schedule = replace(fleet[0].setup.schedule, steps_per_task=1000)
    setup = replace(fleet[0].setup, schedule=schedule)
    runs = [replace(fleet[0], setup=setup, tasks=("push",), seed=seed) for seed in range(16)]
    monkeypatch.setattr(Costs, "times", lambda costs, fleet: Times(0.0, 0.001, 0.0, 0.0))
    monkeypatch.setattr(Costs, "crowding", lambda costs, first, workers, step: 1.7)
    monkeypatch.setattr(envs, "step_cost", lambda task, env: 1.0)

    def needs(count: int) -> FleetNeeds:
        plan = Plan((), tuple(runs[:count]), frozenset(), (tuple(runs[:count]),))
        measuring = Costs({"finetuning": kind}, torch.device("cuda"))
        cores = Parallelism(cores=8)
        return estimate.estimate(plan, measuring, 8, parallel=cores).fleets[0]

    assert needs(1).collect_seconds == pytest.approx(1.0)
    assert needs(3).collect_seconds == pytest.approx(1.2)  # 0.7 * 2 / 7
    assert needs(16).collect_seconds == pytest.approx(2 * 1.7)
    training = needs(1).pool_seconds * needs(1).steps / (needs(1).steps + needs(1).eval_steps)
    assert training == pytest.approx(1.7 / 8)


@pytest.mark.parametrize("error", [WorkerError("a fault of this task"), OSError("no processes")])
def test_a_measurement_that_fails_stops_nothing_and_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    fleet, kind = fleet_of("finetuning")
    cpu = torch.device("cpu")

    def fail(*_: object) -> float:
        raise error

    def crowding(step_seconds: float) -> float:
        cache = TimeCache(tmp_path / "times.json", cpu)
        return Costs({"finetuning": kind}, cpu, cache=cache).crowding(fleet[0], 8, step_seconds)

    monkeypatch.setattr(costs, "crowding", fail)
    assert crowding(0.001) == 1
    monkeypatch.setattr(costs, "crowding", lambda *_: 1.5)
    assert crowding(2 * SLOW) == 1  # would take long
    assert crowding(0.001) == 1.5


def test_crowding_is_measured_once_and_only_of_many_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet, kind = fleet_of("finetuning")
    setup = replace(fleet[0].setup, env=PointMassConfig(horizon=20))
    first = replace(fleet[0], setup=setup, tasks=("reach-0-1", "reach-0-2"))
    cpu = torch.device("cpu")

    def crowding(workers: int) -> float:
        cache = TimeCache(tmp_path / "times.json", cpu)
        return Costs({"finetuning": kind}, cpu, cache=cache).crowding(first, workers, 0.0001)

    monkeypatch.setattr(costs, "FEW_WORKERS", 2)
    assert crowding(2) == 1
    assert not (tmp_path / "times.json").exists()
    measured = crowding(3)  # by three real workers
    assert measured >= 1
    monkeypatch.setattr(costs, "crowding", None)
    assert crowding(3) == measured
