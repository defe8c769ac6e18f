"""Several processes on one folder: killed, stopped, with clocks that jump and equal numbers."""

import contextlib
import json
import os
import random
import signal
import time
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest
from faults import count, times
from outcomes import outcome_files
from trainers import LIMIT, Machine, outcome_of, start, wait_until_stopped

from cwbench.store.results import SegmentFolder
from cwbench.store.runs import load_runs

RUN: dict[str, Any] = {"seeds": (0, 1), "tasks": ("reach-0-1", "reach-2-1000")}
RUN |= {"snapshot_seconds": 0.0}
SEGMENTS = 4


@pytest.fixture(scope="module")
def alone(toy_run: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of runs that nobody disturbed."""
    root = tmp_path_factory.mktemp("alone")
    toy_run(root, **RUN)
    return outcome_files(root)


def check(kind: str, root: Path, alone: dict[str, bytes]) -> None:
    """Right results, each row once, and nobody waits for a segment.

    Who is killed between finishing a segment and letting go of it leaves a claim that nobody reads.
    """
    right, problems = outcome_files(root) == alone, load_runs(root).problems
    count(kind, survived=right and not problems, silent=not right)
    assert right and not problems
    claims = [*root.glob("segments/*/.claim*"), *root.glob("segments/*/claim*")]
    killed = "kills" in kind
    assert all(killed and SegmentFolder(file.parent).done for file in claims)


@pytest.mark.commands
def test_a_stopped_owner_that_lost_its_claim_writes_nothing(
    tmp_path: Path, alone: dict[str, bytes]
) -> None:
    """Stopped for longer than a claim lives, taken over from another machine, then continued."""
    root = tmp_path / "results"
    stopped = start(root, Machine("first", stop_at=9), RUN)
    try:
        wait_until_stopped(stopped)
        heir = start(root, Machine("second"), RUN)
        said = outcome_of(heir, root)
        assert said["good"] and said["trained"] == SEGMENTS
        before = {file: file.read_bytes() for file in root.rglob("*") if file.is_file()}
    finally:
        os.kill(stopped.pid or 0, signal.SIGCONT)
    said = outcome_of(stopped, root)
    lost = [m for m in said["failed"].values() if "another process has taken it" in m]
    assert lost and said["trained"] == 0
    assert {file: file.read_bytes() for file in root.rglob("*") if file.is_file()} == before
    check("SIGSTOP past a claim's lifetime", root, alone)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "machines"),
    [
        ("clocks that jump by 200 s", [Machine("a", clock=200), Machine("b", clock=-200)]),
        ("equal host and process numbers", [Machine("a", True), Machine("b", True)]),
    ],
    ids=["clocks", "numbers"],
)
def test_processes_that_differ(
    kind: str, machines: list[Machine], tmp_path: Path, alone: dict[str, bytes]
) -> None:
    root = tmp_path / "results"
    processes = [start(root, machine, RUN) for machine in machines]
    said = [outcome_of(process, root) for process in processes]
    assert sum(one["trained"] for one in said) == SEGMENTS and all(one["good"] for one in said)
    check(kind, root, alone)


def next_owner(root: Path, processes: list[BaseProcess]) -> int | None:
    """Wait for a claim; which process has it. None when all have ended."""
    numbers, deadline = [process.pid for process in processes], time.monotonic() + LIMIT
    while any(process.is_alive() for process in processes):
        for file in root.glob("segments/*/claim.json"):
            with contextlib.suppress(OSError, ValueError):
                if (pid := json.loads(file.read_text())["pid"]) in numbers:
                    return numbers.index(pid)
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return None


@pytest.mark.slow
def test_random_kills_of_several_processes(tmp_path: Path, alone: dict[str, bytes]) -> None:
    """Of four processes, two on other machines, whoever trains is killed and started again."""
    rng, root = random.Random(0), tmp_path / "results"
    machines = [Machine(), Machine(), Machine("a"), Machine("b", clock=200)]
    processes = [start(root, machine, RUN) for machine in machines]
    for _ in range(times(10)):
        if (victim := next_owner(root, processes)) is None:
            break
        time.sleep(rng.uniform(0, 0.5))
        processes[victim].kill()
        processes[victim].join(LIMIT)
        count("SIGKILL of one of four processes")
        processes[victim] = start(root, machines[victim], RUN)
    for process in processes:
        assert outcome_of(process, root).get("good", True)
    check("four processes with kills, compared", root, alone)
