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
    """What it says is added to the log, where there is one.

    Our end of its standard input closes when this process ends, however it ends.
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
    """The other side: when standard input ends, pause as if asked to."""

    def watch() -> None:
        while os.read(0, 1):
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()
