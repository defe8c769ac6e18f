"""What the tests on real clusters share: a small experiment, and how to see that it went well."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from commands import environment

# Two runs of two tasks as fleets of one: four jobs in two levels.
RUN = ["run", "--method", "finetuning", "--seq", "faucet-close,push", "--seeds", "0-1"]
RUN += ["--protocol", "smoke", "--fleet-size", "1", "--threads", "1", "--device", "cpu", "--yes"]
RUN += ["--no-live", "--snapshot-minutes", "0.02"]


def start(*args: str, **options: Any) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "cwbench", *args]
    return subprocess.Popen(command, env=environment(), text=True, **options)


def statuses(results: Path) -> dict[str, dict[str, Any]]:
    """Status of every segment, by folder."""
    return {
        file.parent.name: json.loads(file.read_text())
        for file in sorted(results.glob("segments/*/status.json"))
    }


def until(happened: Callable[[], Any], seconds: float) -> Any:
    """Look again until it is there."""
    end = time.monotonic() + seconds
    while not (found := happened()):
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.1)
    return found


def assert_equal_to_a_local_run(results: Path, folder: Path, args: Iterable[str] = ()) -> None:
    """The same experiment in one process on this machine gives the same bytes."""
    local = folder / "local"
    assert start(*RUN, *args, "--quiet", "--results", str(local)).wait() == 0
    there, here = (sorted(r.glob("segments/*")) for r in (results, local))
    assert [p.name for p in there] == [p.name for p in here]
    for one, other in zip(there, here, strict=True):
        for name in ("evals.csv", "end.safetensors"):
            assert (one / name).read_bytes() == (other / name).read_bytes(), name


def assert_trained_once(results: Path, segments: int) -> None:
    """Every segment is done and began from scratch once only."""
    found = statuses(results)
    assert [status["state"] for status in found.values()] == ["done"] * segments
    assert all(s["sessions"][0] == 0 and all(s["sessions"][1:]) for s in found.values()), found


def tree(pid: int) -> list[int]:
    """A process and all below it."""
    parents: dict[int, list[int]] = {}
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = file.read_text()
        except OSError:  # gone meanwhile
            continue
        parents.setdefault(int(text.rpartition(")")[2].split()[1]), []).append(
            int(file.parent.name)
        )
    found = [pid]
    for one in found:
        found += parents.get(one, [])
    return found


def switch_off(pid: int) -> list[int]:
    """End a process and all below it at one moment, as if their machine had lost power."""
    found = tree(pid)
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for one in found:
            os.kill(one, number)
    return found
