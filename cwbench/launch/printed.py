"""Print the commands, to be pasted wherever they should run."""

import shlex
from collections.abc import Sequence

from cwbench.launch import Task, Tell
from cwbench.launch.jobs import levels
from cwbench.planning.fleet_time import Parallelism
from cwbench.planning.machine import cores


class Printed:
    """Commands go to the standard output, where `tell` may go elsewhere."""

    def check(self) -> None:
        pass

    def launch(self, tasks: Sequence[Task], tell: Tell) -> None:
        by_file = {task.job.file: task for task in tasks}
        for number, level in enumerate(levels([task.job for task in tasks])):
            order = "in any order, also at the same time"
            when = f"after those above have ended, {order}" if number else order
            print(f"# level {number + 1}: {len(level)} fleets, {when}")
            for job in level:
                print(shlex.join(["cwbench", *by_file[job.file].arguments]))

    def parallelism(self) -> Parallelism:
        return Parallelism(processes=1, cores=cores())
