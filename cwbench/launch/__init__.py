"""Who trains the fleets of a plan: this process, or commands started elsewhere.

A launcher gets jobs, parents first, and starts `cwbench train FILE` for each of them somewhere that
shares the results folder. What is trained, and that nothing is trained twice, is the business of
that command and of the claims in the folder; a launcher only decides where and when.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from cwbench.launch.jobs import Job
from cwbench.planning.fleet_time import Parallelism

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Command:
    """The command that trains a job, without the interpreter: `train FILE ...`."""

    job: Job
    arguments: list[str]

    @property
    def log(self) -> Path:
        """The command's output, if the launcher has no place for it."""
        return self.job.file.with_suffix(".log")


class Launcher(Protocol):
    def check(self) -> None:
        """UserError if it cannot work; called before anything is written."""

    def launch(self, commands: Sequence[Command], tell: Tell) -> None: ...

    def parallelism(self) -> Parallelism:
        """How many processes train at the same time, as far as this machine knows."""
