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
