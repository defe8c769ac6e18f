"""What a session says when nobody listens."""

import os
import subprocess
import sys

import pytest

SAY = "from cwbench.experiment.listener import Terminal; Terminal().say('3 runs')"


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ("", "cwbench: the output was closed, so cwbench stops; the same command continues\n"),
        ("trains=False", ""),  # a dry run has nothing to continue
    ],
)
def test_a_closed_output_is_a_line_on_stderr(options: str, line: str) -> None:
    """As after `cwbench run | head -1`."""
    say = SAY.replace("Terminal()", f"Terminal({options})")
    read, write = os.pipe()
    os.close(read)
    ended = subprocess.run(
        [sys.executable, "-c", say], stdout=write, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(write)
    assert (ended.returncode, ended.stderr) == (1, line)


def test_an_output_that_cannot_show_a_name_escapes_it() -> None:
    """Training that has ended must not fail because of its last line."""
    say = SAY.replace("3 runs", "results are in R\\xe9sultats")
    ended = subprocess.run(
        [sys.executable, "-c", say],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONIOENCODING": "ascii"},
    )
    assert ended.stdout == "results are in R\\xe9sultats\n", ended.stderr
