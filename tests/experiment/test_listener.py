"""What a session says when nobody listens."""

import os
import subprocess
import sys

SAY = "from cwbench.experiment.listener import Terminal; Terminal().say('3 runs')"


def test_a_closed_output_is_a_line_on_stderr() -> None:
    """As after `cwbench run | head -1`."""
    read, write = os.pipe()
    os.close(read)
    ended = subprocess.run(
        [sys.executable, "-c", SAY], stdout=write, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(write)
    assert ended.returncode == 1
    assert (
        ended.stderr == "cwbench: the output was closed, so it stops; the same command continues\n"
    )


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
