"""Real disks that are full or lose what was not synced, where mounting is permitted."""

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from commands import environment
from disks import cut_power, make_ext4, mounted
from faults import Disk, Killed, count, times
from outcomes import outcome_files
from sample_results import small, write_results

from cwbench.experiment import toy
from cwbench.sharing.hub import pull
from cwbench.store import files
from cwbench.store.files import sync  # the real one: tests replace it when they start
from cwbench.store.merge import merge, opened
from cwbench.store.runs import load_runs

SCHEDULE = replace(toy.SCHEDULE, steps_per_task=40, eval_every=20)
TOY: dict[str, Any] = {"tasks": ("reach-0-1", "reach-2-1000"), "snapshot_seconds": 0}
TOY |= {"schedule": SCHEDULE}


class RealDisk(Disk):
    """A file system whose power is cut before one of the store's calls."""

    def __init__(self, folder: Path, at: int | None = None) -> None:
        super().__init__("power cut", at)
        self.folder = folder

    def _sync(self, path: Path) -> None:
        sync(path)

    def _fail(self, call: Callable[..., Any], args: Any, kwargs: Any) -> None:
        self.dead = True
        cut_power(self.folder)
        raise Killed


@pytest.mark.slow
def test_a_power_cut_of_a_real_file_system(toy_run: Any, tmp_path: Path) -> None:
    """At moments all over a run and right after its end, when nothing was told to be written."""
    with Disk().watching() as disk:
        toy_run(tmp_path / "whole", "perfect-memory", **TOY)
    expected, image = outcome_files(tmp_path / "whole"), tmp_path / "disk.img"
    number = times(10)
    for n in range(1, number + 1):
        make_ext4(image)
        at = disk.calls * n // number
        with mounted(str(image), tmp_path / "disk", "ext4", "loop") as folder:
            root = folder / "results"
            watched = RealDisk(folder, at)
            with watched.watching(), contextlib.suppress(Killed, OSError):
                toy_run(root, "perfect-memory", **TOY)
            if not watched.dead:
                cut_power(folder)
        with mounted(str(image), tmp_path / "disk", "ext4", "loop") as folder:
            if at == disk.calls:
                assert outcome_files(root) == expected
            for claim in root.glob("segments/*/claim.json"):
                claim.unlink()  # this process lives on
            _, _, outcome = toy_run(root, "perfect-memory", **TOY)
            right = outcome.good and outcome_files(root) == expected
            count("power cut of an ext4 file system", survived=right, silent=not right)
            assert right, (at, outcome)


def test_a_power_cut_after_folders_were_put_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Right after the commands have ended, when nothing was told to be written."""
    source, image = tmp_path / "a", tmp_path / "disk.img"
    write_results(source, sequence_names=["cw3-1"], settings=[small("ewc")], seeds=[0, 1])
    make_ext4(image)
    monkeypatch.setattr(files, "sync", sync)
    with mounted(str(image), tmp_path / "disk", "ext4", "loop") as folder:
        merge([source], folder / "merged")
        merge([source], folder / "study.tar.gz")
        pull(str(source), folder / "pulled")
        cut_power(folder)
    expected = load_runs(source).evals
    with mounted(str(image), tmp_path / "disk", "ext4", "loop") as folder:
        for name in ("merged", "study.tar.gz", "pulled"):
            with opened(folder / name) as root:
                found = load_runs(root)
            right = not found.problems and found.evals.equals(expected)
            count("power cut after merge and pull", survived=right, silent=not right)
            assert right, name


COMMAND = ["run", "--method", "perfect-memory", "--seq", "point3", "--protocol", "demo"]
COMMAND += ["--steps-per-task", "300", "--threads", "1", "--workers", "1", "--no-live"]
COMMAND += ["--snapshot-minutes", "0.005"]


def run(results: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "cwbench", *COMMAND, "--results", str(results)]
    return subprocess.run(command, env=environment(), capture_output=True, text=True)


def leave_free(folder: Path, free: int) -> Path:
    """Fill a disk up to some bytes."""
    found, filler = os.statvfs(folder), folder / "filler"
    filler.write_bytes(bytes(max(0, found.f_bavail * found.f_frsize - free)))
    return filler


@pytest.mark.slow
def test_a_full_disk_is_named_and_the_command_continues(tmp_path: Path) -> None:
    """The disk has room for some of the run only, from nothing to nearly all of it."""
    assert run(tmp_path / "whole").returncode == 0
    expected = outcome_files(tmp_path / "whole")
    size = sum(file.stat().st_size for file in (tmp_path / "whole").rglob("*") if file.is_file())
    number = times(4)
    with mounted("tmpfs", tmp_path / "disk", "tmpfs", f"size={4 * size}") as folder:
        for n in range(number):
            results = folder / f"results-{n}"
            filler = leave_free(folder, size * n // number)
            said = run(results)
            assert said.returncode == 1, said
            assert "No space left on device" in said.stderr + said.stdout
            assert "Traceback" not in said.stderr + said.stdout
            filler.unlink()
            right = run(results).returncode == 0 and outcome_files(results) == expected
            count("full disk", survived=right, silent=not right)
            assert right
            shutil.rmtree(results)
