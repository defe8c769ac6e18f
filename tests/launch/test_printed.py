"""Commands to paste."""

from pathlib import Path
from typing import Any

from cwbench.launch import Command
from cwbench.launch.jobs import Job
from cwbench.launch.printed import Printed


def test_commands_are_printed_level_by_level(capsys: Any) -> None:
    a, b, c = (Path(name) for name in "abc")
    jobs = [Job(c, (), 1, (a, b)), Job(a, (), 0, ()), Job(b, (), 0, ())]
    Printed().launch([Command(job, ["train", str(job.file)]) for job in jobs], print)
    assert capsys.readouterr().out.splitlines() == [
        "# level 1: 2 fleets, in any order, also at the same time",
        "cwbench train a",
        "cwbench train b",
        "# level 2: 1 fleet, after those above have ended",
        "cwbench train c",
    ]
