"""Starting `cwbench train` as a process that ends with the one that started it."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path

PAUSED = 75  # exit status of a job that was asked to stop and can be continued


def start(
    arguments: Sequence[str], environment: Mapping[str, str], log: Path | None = None
) -> subprocess.Popen[bytes]:
    """Its output is appended to the log, if there is one.

    The command pauses when its standard input closes, as it does when this process ends, however
    it ends.
    """
    with log.open("ab") if log else nullcontext() as output:
        return subprocess.Popen(
            [sys.executable, "-m", "cwbench", *arguments, "--tethered"],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            env=os.environ | environment,
            # Ctrl-C reaches the whole process group; the launcher passes it on instead.
            start_new_session=True,
        )


def watch_tether() -> None:
    """In the command: pause, as after a signal, when standard input closes."""

    def watch() -> None:
        while os.read(0, 1):
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()
