"""`cwbench` as a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def environment() -> dict[str, str]:
    """This process's, in which Python finds this checkout first."""
    others = os.environ.get("PYTHONPATH", "")  # of a host where nothing can be installed
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), others]))}


def cwbench(*args: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "cwbench", *args]
    return subprocess.run(command, capture_output=True, text=True, env=environment(), cwd=cwd)
