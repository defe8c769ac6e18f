"""Print the commands, to be pasted wherever they should run."""

import shlex
from collections.abc import Sequence

from cwbench.launch import Command, Tell
from cwbench.launch.jobs import levels
from cwbench.planning.fleet_time import Parallelism
from cwbench.planning.machine import cores


class Printed:
    """Commands go to the standard output, where `tell` may go elsewhere."""

    def check(self) -> None:
        pass

    def launch(self, commands: Sequence[Command], tell: Tell) -> None:
        by_file = {command.job.file: command for command in commands}
        for number, level in enumerate(levels([command.job for command in commands])):
            order = "in any order, also at the same time"
            when = f"after those above have ended, {order}" if number else order
            print(f"# level {number + 1}: {len(level)} fleets, {when}")
            for job in level:
                print(shlex.join(["cwbench", *by_file[job.file].arguments]))

    def parallelism(self) -> Parallelism:
        return Parallelism(processes=1, cores=cores())
