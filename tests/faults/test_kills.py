"""A command that is killed again and again ends with the results of one that was not."""

import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from commands import environment
from faults import count, times

RUN = ["run", "--method", "recall", "--seq", "point3", "--protocol", "demo", "--seeds", "0-1"]
RUN += ["--steps-per-task", "1000", "--threads", "1", "--workers", "1", "--no-live", "--quiet"]
RUN += ["--snapshot-minutes", "0.005"]


def start(results: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "cwbench", *RUN, "--results", str(results)]
    return subprocess.Popen(command, env=environment())


@pytest.mark.slow
def test_random_kills(tmp_path: Path) -> None:
    alone, killed, rng = tmp_path / "alone", tmp_path / "killed", random.Random(0)
    assert start(alone).wait(600) == 0
    for _ in range(times(20)):
        process = start(killed)
        try:
            code: int | None = process.wait(rng.uniform(3, 7))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
            count("SIGKILL")
            continue
        assert code == 0
        break
    else:
        assert start(killed).wait(600) == 0
    for one, other in zip(*(sorted(r.glob("segments/*")) for r in (alone, killed)), strict=True):
        for name in ("evals.csv", "end.safetensors"):
            assert (one / name).read_bytes() == (other / name).read_bytes(), name
