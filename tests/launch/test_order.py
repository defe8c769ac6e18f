"""Jobs start after those of their parents."""

from pathlib import Path

from cwbench.launch import Command
from cwbench.launch.jobs import Job, levels
from cwbench.launch.order import drive


class Recorder:
    """An executor that can run two jobs and ends the older one whenever it is asked."""

    def __init__(self) -> None:
        self.running: list[Command] = []
        self.ended: list[Path] = []

    @property
    def room(self) -> bool:
        return len(self.running) < 2

    @property
    def busy(self) -> bool:
        return bool(self.running)

    def start(self, command: Command) -> None:
        assert set(command.job.after) <= set(self.ended), "started before its parents had ended"
        self.running.append(command)

    def collect(self) -> list[Command]:
        command = self.running.pop(0)
        self.ended.append(command.job.file)
        return [command]

    def stop(self) -> None: ...


def test_jobs_start_after_those_of_their_parents() -> None:
    a, b, c, d = (Path(name) for name in "abcd")
    jobs = [Job(a, (), 0, ()), Job(b, (), 0, ()), Job(c, (), 1, (b,)), Job(d, (), 2, (a, c))]
    executor = Recorder()
    drive([Command(job, []) for job in reversed(jobs)], executor)  # even if they come in no order
    assert sorted(executor.ended) == [a, b, c, d]
    assert [[job.file for job in level] for level in levels(jobs)] == [[a, b], [c], [d]]
