"""Print the commands, to be pasted wherever they should run."""

import shlex
from collections.abc import Sequence

from cwbench.launch import Command, Tell
from cwbench.launch.order import levels
from cwbench.planning.fleet_time import Parallelism
from cwbench.planning.machine import cores
from cwbench.spec.text import counted


class Printed:
    """Commands go to the standard output; `tell` may write elsewhere."""

    def check(self) -> None:
        pass

    def launch(self, commands: Sequence[Command], tell: Tell) -> None:
        for number, level in enumerate(levels(commands)):
            notes = [counted(len(level), "fleet")]
            notes += ["after those above have ended"] if number else []
            notes += ["in any order, also at the same time"] if len(level) > 1 else []
            print(f"# level {number + 1}: {', '.join(notes)}")
            for command in level:
                print(shlex.join(["cwbench", *command.arguments]))

    def parallelism(self) -> Parallelism:
        return Parallelism(processes=1, cores=cores())
