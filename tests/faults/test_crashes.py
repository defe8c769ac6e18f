"""Runs that are killed, cut from power or short of disk continue to the same results."""

import contextlib
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from faults import FAULTS, Disk, Killed, count, times

from cwbench.experiment import toy
from cwbench.store.results import Store

ToyRun = Callable[..., Any]
SCHEDULE = replace(toy.SCHEDULE, steps_per_task=40, eval_every=20)
RUN: dict[str, Any] = {"tasks": ("reach-0-1", "reach-2-1000"), "snapshot_seconds": 0}
RUN |= {"schedule": SCHEDULE}


def outcome_files(store: Store, plan: Any) -> list[bytes]:
    folders = [store.folder(segment) for segment in plan.segments]
    return [(f.path / name).read_bytes() for f in folders for name in ("evals.csv", f.end.name)]


@pytest.fixture(scope="module")
def whole(toy_run: ToyRun, tmp_path_factory: pytest.TempPathFactory) -> tuple[list[bytes], int]:
    """An undisturbed run's results, and its calls to the file system."""
    with Disk().watching() as disk:
        store, plan, _ = toy_run(tmp_path_factory.mktemp("whole"), "perfect-memory", **RUN)
    return outcome_files(store, plan), disk.calls


def disturb(toy_run: ToyRun, root: Path, fault: str, at: int, expected: list[bytes]) -> None:
    """A run with a fault before one call, then the same command again."""
    with Disk(fault, at).watching() as disk, contextlib.suppress(Killed, OSError):
        toy_run(root, "perfect-memory", **RUN)
    if fault == "power cut":
        disk.cut_power(root)
    if fault == "power cut before renames":
        disk.cut_power_before_renames(root)
    for claim in root.glob("segments/*/claim.json"):
        claim.unlink()  # this process lives on, unlike one that was killed
    store, plan, outcome = toy_run(root, "perfect-memory", **RUN)
    right = outcome.good and outcome_files(store, plan) == expected
    # A fault that needs `repair` is survived, if it is named.
    named = bool(outcome.failed) and all(".json" in m or "." in m for m in outcome.failed.values())
    count(fault, survived=right or named, silent=outcome.good and not right)
    assert right, (fault, at, outcome)
    shutil.rmtree(root)


@pytest.mark.parametrize("fault", ["power cut", "ENOSPC"])
def test_a_fault_in_the_middle(
    fault: str, toy_run: ToyRun, tmp_path: Path, whole: tuple[list[bytes], int]
) -> None:
    expected, calls = whole
    disturb(toy_run, tmp_path / "run", fault, calls * 2 // 3, expected)


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_faults_before_many_calls(
    fault: str, toy_run: ToyRun, tmp_path: Path, whole: tuple[list[bytes], int]
) -> None:
    """Before every call where CWBENCH_FAULTS is 10 or more."""
    expected, calls = whole
    number = min(calls, times(40))
    for n in range(number):
        disturb(toy_run, tmp_path / "run", fault, n * calls // number, expected)
