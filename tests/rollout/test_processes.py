"""Workers that die or hang: they are replaced, and no number changes."""

import os
import signal
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from lost_workers import Deadly, Fault, hang, kill, lose
from point_lanes import finish_evaluations

from cwbench.learner.policy import make_policy
from cwbench.rollout.collector import Collector
from cwbench.rollout.episodes import EvalJob, EvalResult
from cwbench.rollout.pool import Pool, WorkerError
from cwbench.rollout.processes import WorkerProcess
from cwbench.rollout.shared_memory import SharedArray
from cwbench.spec.config import NetworkConfig, PointMassConfig

pytestmark = pytest.mark.filterwarnings("ignore:worker .* it is replaced:RuntimeWarning")


def results(root: Path) -> dict[str, bytes]:
    """What a run leaves: evaluations and the weights at the end of every task."""
    files = [*root.glob("segments/*/evals.csv"), *root.glob("segments/*/end.safetensors")]
    return {str(file.relative_to(root)): file.read_bytes() for file in files}


@pytest.mark.parametrize(
    ("name", "fault", "moment"),
    [
        ("finetuning", kill, "before"),
        ("clonex", hang, "after"),
        pytest.param("multitask", kill, "after", marks=pytest.mark.slow),
    ],
)
def test_a_lost_worker_changes_no_number(
    name: str,
    fault: Fault,
    moment: str,
    toy_run: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Lost before a chunk is asked for, or after, when it may be half done.

    ClonEx explores with old heads, the best so far; joint training changes tasks every episode.
    """
    options: dict[str, Any] = {"seeds": (0, 1), "tasks": ("reach-0-1", "reach-2-1000")}
    toy_run(tmp_path / "whole", name, **options)
    chunks = lose(monkeypatch, {4: (fault, 0), 11: (fault, 1)}, after=moment == "after")
    _, _, outcome = toy_run(tmp_path / "faulty", name, **options, snapshot_seconds=0)
    assert outcome.good and len(chunks) > 11
    assert results(tmp_path / "faulty") == results(tmp_path / "whole")


def test_a_run_continued_from_a_snapshot_survives_a_lost_worker(
    toy_run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its lanes began in saved states, in the middle of an episode."""
    toy_run(tmp_path / "whole", tasks=("reach-0-1",))
    toy_run(tmp_path / "faulty", tasks=("reach-0-1",), stop_after=5)
    request = Collector.request

    def faulty(self: Collector, steps: int, version: int) -> None:
        request(self, steps, version)
        if not lost:
            lost.extend(range(2))
            for number in lost:
                kill(self.pool, number)

    lost: list[int] = []
    monkeypatch.setattr(Collector, "request", faulty)
    _, _, outcome = toy_run(tmp_path / "faulty", tasks=("reach-0-1",))
    assert outcome.good and lost
    assert results(tmp_path / "faulty") == results(tmp_path / "whole")


LAYOUT = make_policy(12, 4, NetworkConfig(width=8, layers=2)).layout(1)


def job(weights: SharedArray) -> EvalJob:
    return EvalJob(
        seed=0,
        purpose="evaluate",
        rng_key=(0,),
        task="reach-0-1",
        head=0,
        episodes=2,
        env=PointMassConfig(),
        layout=LAYOUT,
        weights=weights.ref,
        row=0,
    )


def test_a_worker_that_dies_three_times_in_a_row_fails_the_run() -> None:
    weights = SharedArray((1, LAYOUT.size))
    with Pool(1, Deadly) as pool:  # type: ignore[arg-type]
        pool.evaluate(job(weights), lambda result: None)
        message = "worker 0 failed 3 times in a row; it ended with exit code -9"
        with pytest.raises(WorkerError, match=message):
            finish_evaluations(pool)
        pool.reset()
        finish_evaluations(pool)  # nothing is left to do
    weights.close()


def test_failures_count_until_the_work_is_done() -> None:
    """A worker may be lost any number of times, if it does its work in between."""
    weights, found = SharedArray((1, LAYOUT.size)), list[EvalResult]()
    with Pool(1) as pool:
        for count in range(4):
            pool.evaluate(job(weights), found.append)
            kill(pool, 0)
            finish_evaluations(pool)
            assert len(found) == count + 1
    assert len({(result.successes, result.mean_return) for result in found}) == 1
    weights.close()


def test_work_that_is_cancelled_is_no_failure_of_other_work() -> None:
    """A worker lost four times, each time with work that nobody needs any more."""
    weights, found = SharedArray((1, LAYOUT.size)), list[EvalResult]()
    with Pool(1) as pool:
        for count in range(4):
            given_up = SimpleNamespace(failure="")
            pool.evaluate(replace(job(weights), episodes=100), found.append, given_up)
            worker = pool.workers[0]
            while worker.key not in pool._evaluations:
                time.sleep(0.001)
            kill(pool, 0)
            while pool.workers[0] is worker:
                pool.receive()
            assert not given_up.failure
            pool.cancel(given_up)
            pool.evaluate(job(weights), found.append)
            finish_evaluations(pool)
            assert len(found) == count + 1
    weights.close()


def wait_until_started(worker: WorkerProcess) -> None:
    deadline = time.monotonic() + 120
    while not worker.beats.array[0]:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_the_watchdog_ends_a_stopped_worker() -> None:
    """Also when nobody but its own thread looks."""
    weights, found = SharedArray((1, LAYOUT.size)), list[EvalResult]()
    with Pool(1, timeout=2.0) as pool:
        wait_until_started(pool.workers[0])  # a new process may be silent for longer
        pid = pool.workers[0].pid
        os.kill(pid, signal.SIGSTOP)
        pool.evaluate(job(weights), found.append)
        finish_evaluations(pool)
        assert len(found) == 1 and pool.workers[0].pid != pid
    weights.close()


def test_a_starting_worker_and_one_that_beats_are_left_alone() -> None:
    with Pool(1, timeout=1e9) as pool:
        worker = pool.workers[0]
        for beats in (0, 0, 1, 2, 3):
            worker.beats.array[0] = beats
            worker.look(10, 11)
        assert not worker._hung
