"""Fixtures: a small trainer, and whole runs on the point-mass toy with real worker processes."""

import os
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from cwbench.experiment import build
from cwbench.experiment.execution import Execution
from cwbench.experiment.session import Session, Silent
from cwbench.fleet import stop
from cwbench.fleet.progress import Quiet
from cwbench.fleet.sharing import Outcome
from cwbench.learner.method import Method
from cwbench.learner.replay import Replay
from cwbench.learner.trainer import Trainer
from cwbench.planning.plan import Plan, Run, split_evenly
from cwbench.rollout.pool import Pool
from cwbench.sequences import Sequence
from cwbench.spec.config import (
    MethodConfig,
    NetworkConfig,
    SACConfig,
    ScheduleConfig,
)
from cwbench.store import files
from cwbench.store.results import Store

TOY_TASKS = ("reach-0-1", "reach-2-1000", "reach-4-1")
TOY_SCHEDULE = ScheduleConfig(
    steps_per_task=60,
    eval_every=25,
    eval_episodes=2,
    start_steps=10,
    update_after=20,
    update_every=10,
)
# What methods need so that their parts act within a toy task of 40 updates.
TOY_OPTIONS: dict[str, dict[str, Any]] = {
    "redo": {"every": 7, "tau": 0.9, "samples": 8},
    "continual-backprop": {"every": 3, "maturity": 6, "replacement_rate": 0.02, "samples": 8},
    "er": {"memory": 50, "memory_batch": 8},
    "reset-distill": {"distill_updates": 10, "memory_size": 20, "expert_steps": 30},
    "progress-compress": {"distill_updates": 10, "importance_samples": 20},
    "cka-rl": {"pool": 2},
    "csp": {"candidates": 4, "candidate_states": 8, "episodes": 1},
}


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    """Small tensors: threads would only wait for each other."""
    torch.set_num_threads(1)
    torch.backends.mkldnn.enabled = False  # type: ignore[assignment] # see `cwbench.experiment.execution.set_up_torch`


@pytest.fixture(scope="session", autouse=True)
def no_sync() -> Iterator[None]:
    """Many small files are written; waiting for the disk would take most of the time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "sync", lambda path: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Commands that tests start leave the user's cache alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CWBENCH_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def double_precision(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """For all tensors made in the test."""
    monkeypatch.setattr(torch.Tensor, "float", torch.Tensor.double)
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.fixture
def make_trainer() -> Callable[..., Trainer]:
    """A trainer with random transitions of its own in the replay: run r's depend on its seed."""

    def make(
        seeds: list[int],
        *,
        position: int = 0,
        sac: SACConfig | None = None,
        network: NetworkConfig | None = None,
        rows: int = 200,
        method: Callable[[Trainer], Method[Any]] = lambda trainer: Method(MethodConfig(), trainer),
        inherited: Mapping[str, Tensor] | None = None,
    ) -> Trainer:
        trainer = Trainer(
            seeds,
            position,
            dims=(12, 4),
            sac=sac or SACConfig(batch_size=16),
            network=network or NetworkConfig(width=16),
            schedule=ScheduleConfig(),
            device=torch.device("cpu"),
        )
        replay = Replay(len(seeds), rows, (12, 4), trainer.streams, live=[position])
        data = [
            torch.randn(rows, 29, generator=torch.Generator().manual_seed(seed)) for seed in seeds
        ]
        replay.add(position, torch.stack(data))
        trainer.begin(method(trainer), replay, inherited=inherited)
        return trainer

    return make


@pytest.fixture(scope="session")
def toy_pool() -> Iterator[Pool]:
    with Pool(2) as pool:
        yield pool


class StopAfter(Quiet):
    """Sends this process a Ctrl-C after n chunks."""

    def __init__(self, chunks: int) -> None:
        self.left = chunks

    def advance(self, fleet: Any) -> None:
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGINT)


class Stopping(Silent):
    """Tells nobody, and stops after n chunks."""

    def __init__(self, chunks: int) -> None:
        self.chunks = chunks

    def progress(self, total_steps: int) -> StopAfter:
        return StopAfter(self.chunks)


ToyRun = Callable[..., tuple[Store, Plan, Outcome]]


@pytest.fixture(scope="session")
def toy_run(toy_pool: Pool) -> ToyRun:
    """Train methods on the toy tasks into a folder, as `cwbench run` would."""

    def run(
        root: Path,
        *names: str,
        seeds: tuple[int, ...] = (0,),
        tasks: tuple[str, ...] = TOY_TASKS,
        stop_after: int = 0,
        groups: int = 1,
        side_by_side: int | None = None,
        snapshot_seconds: float = 1e9,
        schedule: ScheduleConfig = TOY_SCHEDULE,
        sac: dict[str, Any] | None = None,
        options: dict[str, Any] | None = None,
        sweep: Iterable[dict[str, Any]] = ({},),
        diagnostics: bool = False,
    ) -> tuple[Store, Plan, Outcome]:
        small = {"batch_size": 8, "width": 8, "horizon": 20, **(sac or {})}
        sequence = Sequence("toy", tasks, "pointmass")
        methods, experiments = {}, dict[str, list[Run]]()
        for name in names or ("finetuning",):
            base, entry = build.load_method(name)
            given = small | asdict(schedule) | TOY_OPTIONS.get(base, {}) | (options or {})
            setups = [
                build.make_setup(base, entry, "paper", given | own, sequence) for own in sweep
            ]
            methods[base] = entry.method
            experiments[name] = [
                build.make_run(entry, name, setup, "toy", sequence, seed)
                for setup in setups
                for seed in seeds
            ]
        runs = [run for found in experiments.values() for run in found]
        session = Session(
            Store(root),
            methods,
            Execution(
                threads=1,
                snapshot_minutes=snapshot_seconds / 60,
                fleet_size=8,
                side_by_side=side_by_side,
                diagnostics=diagnostics,
            ),
            torch.device("cpu"),
            listener=Stopping(stop_after),
            fits=lambda fleet: True,
            groups=lambda fleet: split_evenly(fleet, min(groups, len(fleet))),
        )
        session.record(experiments)
        plan = session.plan(runs)
        with pytest.MonkeyPatch.context() as patch:
            # On a busy machine a chunk may take longer than people would wait.
            patch.setitem(stop.GRACE_SECONDS, signal.SIGINT, 60.0)
            outcome = session.train(plan, "toy", toy_pool)
        return session.store, plan, outcome

    return run
