"""Arrays that processes share."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cwbench.rollout.shared_memory import SharedArray


def test_a_closed_array_is_not_mistaken_for_another() -> None:
    first = SharedArray((3,))
    first.close()
    second = SharedArray((3,))  # on Linux the same path
    second.array[:] = 7
    assert (second.ref.open() == 7).all()
    with pytest.raises(FileNotFoundError):
        first.ref.open()
    second.close()


KILLED = """
import os, signal
from cwbench.rollout.processes import WorkerProcess
from cwbench.rollout.shared_memory import SharedArray
array = SharedArray((3,))
print(os.readlink(array.ref.path), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="shared memory has names here")
def test_a_killed_process_leaves_no_shared_memory_behind(tmp_path: Path) -> None:
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    made = subprocess.run(
        [sys.executable, "-c", KILLED], env=environment, stdout=subprocess.PIPE, text=True
    )
    assert made.returncode == -signal.SIGKILL
    assert made.stdout.startswith("/memfd:")  # in no file system
    assert not list(tmp_path.iterdir())
