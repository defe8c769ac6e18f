"""Runs that are killed, cut from power or short of disk continue to the same results."""

import contextlib
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from faults import ERRORS, Disk, Killed, count, kill

from cwbench.store.results import Store

ToyRun = Callable[..., Any]
RUN: dict[str, Any] = {"tasks": ("reach-0-1", "reach-2-1000"), "snapshot_seconds": 0}


def outcome_files(store: Store, plan: Any) -> list[bytes]:
    folders = [store.folder(segment) for segment in plan.segments]
    return [(f.path / name).read_bytes() for f in folders for name in ("evals.csv", f.end.name)]


@pytest.fixture(scope="module")
def whole(toy_run: ToyRun, tmp_path_factory: pytest.TempPathFactory) -> tuple[list[bytes], int]:
    """An undisturbed run's results, and its calls to the file system."""
    with Disk(kill).watching() as disk:
        store, plan, _ = toy_run(tmp_path_factory.mktemp("whole"), "perfect-memory", **RUN)
    return outcome_files(store, plan), disk.calls


def disturb(
    toy_run: ToyRun, root: Path, kind: str, act: Callable[[], None], at: int, expected: list[bytes]
) -> None:
    """A run with a fault before one call, then the same command again."""
    with Disk(act, at).watching() as disk, contextlib.suppress(Killed, OSError):
        toy_run(root, "perfect-memory", **RUN)
    if kind == "power cut":
        disk.cut_power(root)
    for claim in root.glob("segments/*/claim.json"):
        claim.unlink()  # this process lives on, unlike one that was killed
    store, plan, outcome = toy_run(root, "perfect-memory", **RUN)
    right = outcome.good and outcome_files(store, plan) == expected
    # A fault that needs `repair` is survived, if it is named.
    named = bool(outcome.failed) and all(".json" in m or "." in m for m in outcome.failed.values())
    count(kind, survived=right or named, silent=outcome.good and not right)
    assert right, (kind, at, outcome)
    shutil.rmtree(root)


KINDS: dict[str, Callable[[], None]] = {"kill": kill, "power cut": kill, **ERRORS}


@pytest.mark.parametrize("kind", ["power cut", "ENOSPC"])
def test_a_fault_in_the_middle(
    kind: str, toy_run: ToyRun, tmp_path: Path, whole: tuple[list[bytes], int]
) -> None:
    expected, calls = whole
    disturb(toy_run, tmp_path / "run", kind, KINDS[kind], calls * 2 // 3, expected)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_fault_before_every_call(
    kind: str, toy_run: ToyRun, tmp_path: Path, whole: tuple[list[bytes], int]
) -> None:
    expected, calls = whole
    for at in range(0, calls, 3):
        disturb(toy_run, tmp_path / "run", kind, KINDS[kind], at, expected)
