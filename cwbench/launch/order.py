"""Jobs handed to an executor as it has room, each after those that train its parents."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from cwbench.launch import Command
from cwbench.spec.text import counted


class Executor(Protocol):
    """Where commands run: a machine's devices, a cluster."""

    @property
    def room(self) -> bool: ...  # for one more
    @property
    def busy(self) -> bool: ...
    def start(self, command: Command) -> None: ...
    def collect(self) -> Sequence[Command]: ...  # those that have ended, after a moment
    def stop(self) -> None: ...  # let all pause, and wait for it


def drive(commands: Sequence[Command], executor: Executor) -> None:
    """Run jobs until all have ended.

    A job starts after failed ones, too: the parents of some of its runs may be done.
    """
    waiting, ended = list(commands), set[Path]()
    try:
        while waiting or executor.busy:
            for command in list(waiting):
                if executor.room and ended.issuperset(command.job.after):
                    waiting.remove(command)
                    executor.start(command)
            ended |= {command.job.file for command in executor.collect()}
    except KeyboardInterrupt:
        executor.stop()
        raise


def levels(commands: Sequence[Command]) -> list[list[Command]]:
    """Jobs that can run side by side, parents first."""
    deepest = max((command.job.level for command in commands), default=-1)
    return [[one for one in commands if one.job.level == level] for level in range(deepest + 1)]


def describe(command: Command) -> str:
    """A job in a few words."""
    segments = command.job.segments
    names = sorted({segment.setup.method for segment in segments})
    return f"{', '.join(names)} task {segments[0].position + 1}, {counted(len(segments), 'run')}"
