"""A real Slurm on this machine, with jobs that run into their time limit."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from clusters import (
    RUN,
    assert_equal_to_a_local_run,
    assert_trained_once,
    start,
    statuses,
    until,
)

from cwbench.store.claims import owner
from cwbench.store.results import SegmentFolder

pytest.importorskip("submitit", reason="submitit is not installed (pip install 'cwbench[slurm]')")
pytestmark = [pytest.mark.cluster, pytest.mark.filterwarnings("default")]

SCRIPT = Path(__file__).parents[2] / "scripts" / "slurm.sh"
# One run of two tasks: a job, and one that depends on it. All snapshots are those that the signal
# before the time limit asks for.
ONE = ["--seeds", "0", "--snapshot-minutes", "60"]


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    missing = [name for name in ("slurmctld", "slurmd", "munged") if not shutil.which(name)]
    if missing:
        pytest.skip(f"{', '.join(missing)} not installed (Debian: slurmctld slurmd munge)")
    if os.geteuid() != 0:
        pytest.skip("starting Slurm's daemons needs root")
    folder = tmp_path / "slurm"
    made = subprocess.run([SCRIPT, "start", folder], capture_output=True, text=True)
    if made.returncode:
        pytest.skip(f"Slurm does not start here: {made.stderr.strip()[-300:]}")
    monkeypatch.setenv("SLURM_CONF", str(folder / "slurm.conf"))
    yield
    for log in (folder / "log").glob("slurm*"):
        print_end(log)
    subprocess.run(["scancel", "--user", "root"], check=True)
    subprocess.run([SCRIPT, "stop", folder], check=True)


def waiting() -> bool:
    return bool(subprocess.run(["squeue", "-h"], capture_output=True, check=True).stdout.strip())


def print_end(log: Path) -> None:
    print(log.name, log.read_text()[-2000:], sep="\n...")


def at_work(results: Path) -> list[int]:
    """Processes that are training segments."""
    owners = map(owner, map(SegmentFolder, results.glob("segments/*")))
    return [int(name.rpartition(":")[2]) for name in owners if name]


def steps_of_a_job(folder: Path) -> int:
    """Steps that take longer than a job's time limit, on a machine of any speed."""
    assert start(*RUN, *ONE, "--quiet", "--results", str(folder)).wait() == 0
    return int(600 * 80 / min(status["seconds"] for status in statuses(folder).values()))


def test_jobs_that_reach_their_time_limit_continue(slurm: None, tmp_path: Path) -> None:
    results = tmp_path / "results"
    # Slurm looks at time limits every 30 s: the signal comes 20 to 50 s after a job's start.
    limit = ["--slurm-time", "1", "--slurm-signal", "10", "--cpus-per-fleet", "1"]
    args = [*ONE, "--steps-per-task", str(steps_of_a_job(tmp_path / "short"))]
    run = start(*RUN, *args, "--launcher", "slurm", *limit, "--results", str(results))
    assert run.wait() == 0
    # Slurm's signal goes to all processes of a job, one after the other. On a busy machine the
    # command may have stopped before the process that waits for it gets the signal.
    [pid] = until(lambda: at_work(results), 120)
    os.kill(pid, signal.SIGUSR2)
    until(lambda: not waiting(), 1200)
    print("states:", {name: status["state"] for name, status in statuses(results).items()})
    for log in sorted((results / "jobs" / "slurm").glob("*_log.out")):
        print_end(log)
    assert_trained_once(results, 2)
    sessions = {name: status["sessions"] for name, status in statuses(results).items()}
    print("the steps at which each began:", sessions)
    assert max(map(len, sessions.values())) > 1, "no job reached its limit"
    assert_equal_to_a_local_run(results, tmp_path, args)


def test_a_partition_that_does_not_exist(slurm: None, tmp_path: Path) -> None:
    args = ["--launcher", "slurm", "--slurm-partition", "nope", "--results", str(tmp_path / "r")]
    run = start(*RUN, *args, stderr=subprocess.PIPE)
    error = run.communicate()[1]
    assert run.returncode == 2 and "Invalid partition" in error.splitlines()[-1]
