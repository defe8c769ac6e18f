"""Jobs start after those of their parents."""

from pathlib import Path

from cwbench.launch import Command
from cwbench.launch.jobs import Job
from cwbench.launch.order import drive, levels


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


def test_levels_go_from_parents_to_children() -> None:
    a, b, c = (Path(name) for name in "abc")
    jobs = [Job(c, (), 1, (a, b)), Job(a, (), 0, ()), Job(b, (), 0, ())]
    found = levels([Command(job, []) for job in jobs])
    assert [[command.job.file for command in level] for level in found] == [[a, b], [c]]
    assert levels([]) == []
