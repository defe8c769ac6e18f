"""Processes that train toy runs in one results folder, each as if on a machine of its own."""

import json
import multiprocessing
import os
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any
from unittest.mock import patch

LIFETIME = 10.0  # of a claim whose owner gives no sign, in seconds
LIMIT = 300.0  # of every wait: machines may be busy
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["torch", "pandas"])  # once for all, not in every process


@dataclass(frozen=True)
class Machine:
    """What a process takes itself for; it need not be true."""

    name: str = ""  # other than this machine: nobody can tell whether the process lives
    same_numbers: bool = False  # host, process number and start as in every other container
    clock: float = 0.0  # seconds ahead of the true time, then behind, in turns
    stop_at: int = 0  # the chunk at which it is stopped, as by Ctrl-Z


class Chunks:
    """Progress that stops the process, and lets its clock jump."""

    def __init__(self, machine: Machine) -> None:
        self.machine, self.count = machine, 0

    def shift(self) -> float:
        return -self.machine.clock if self.count % 2 else self.machine.clock

    def advance(self, group: Any) -> None:
        self.count += 1
        if self.count == self.machine.stop_at:
            os.kill(os.getpid(), signal.SIGSTOP)


@contextmanager
def pretending(machine: Machine, chunks: Chunks) -> Iterator[None]:
    from cwbench.experiment import toy
    from cwbench.fleet import claiming
    from cwbench.store import claims, files

    now, touch, true = time.time, os.utime, claims._this_process()
    mine = true | ({"pid_namespace": machine.name} if machine.name else {})
    mine |= {"host": "node", "pid": 7, "started": "5"} if machine.same_numbers else {}
    replaced = [
        (claims, "BEAT_SECONDS", 0.2),
        (claims, "STALE_SECONDS", LIFETIME),
        (claiming, "WAIT_SECONDS", 0.05),
        (files, "sync", lambda path: None),
        (claims, "_this_process", lambda: mine),
        (claims, "_pid_namespace", lambda: mine["pid_namespace"]),
        (time, "time", lambda: now() + chunks.shift()),
        (os, "utime", lambda file: touch(file, (time.time(), time.time()))),
        (toy.StopAfter, "advance", lambda self, group: chunks.advance(group)),
    ]
    with ExitStack() as stack:
        for owner, name, value in replaced:
            stack.enter_context(patch.object(owner, name, value))
        yield


def train(root: Path, machine: Machine, run: dict[str, Any]) -> None:
    """Train until everything is done; what came out is written next to the results."""
    import torch

    from cwbench.experiment.toy import train_toy
    from cwbench.rollout.pool import Pool

    torch.set_num_threads(1)
    torch.backends.mkldnn.enabled = False  # type: ignore[assignment] # as in every test
    with pretending(machine, Chunks(machine)), Pool(1) as pool:
        outcome = train_toy(pool, root, **run)[2]
    said = {"trained": outcome.trained, "failed": outcome.failed, "good": outcome.good}
    root.with_name(f"outcome-{os.getpid()}.json").write_text(json.dumps(said))


def start(root: Path, machine: Machine, run: dict[str, Any]) -> BaseProcess:
    process = CONTEXT.Process(target=train, args=(root, machine, run))
    process.start()
    return process


def outcome_of(process: BaseProcess, root: Path) -> dict[str, Any]:
    """What a process that has ended says; empty where it was killed."""
    process.join(LIMIT)
    assert process.exitcode is not None
    file = root.with_name(f"outcome-{process.pid}.json")
    found: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    return found


def wait_until_stopped(process: BaseProcess) -> None:
    deadline = time.monotonic() + LIMIT
    while Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] != "T":
        assert time.monotonic() < deadline and process.exitcode is None
        time.sleep(0.05)
