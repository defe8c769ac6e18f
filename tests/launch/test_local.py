"""Fleets on devices of one machine, printed commands, and what is refused."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from commands import environment

from cwbench.cli import main
from cwbench.launch import Command
from cwbench.launch.jobs import Job, read_job, read_segments
from cwbench.launch.local import Local
from cwbench.methods.recall import RecallConfig
from cwbench.store.runs import load_runs

pytestmark = pytest.mark.commands

PAIR = ["pairwise", "--tasks", "2,5", "--method", "recall", "--protocol", "smoke", "--yes"]


def test_printed_commands_train_the_plan(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    args = [*PAIR, "--tasks", "8", "--results", str(tmp_path / "results"), "--launcher", "print"]
    main(args)
    lines = capsys.readouterr().out.splitlines()
    assert [line[:9] for line in lines[::2]] == ["# level 1", "# level 2"]
    parent, child = ([*line.split()[1:], "--threads", "1"] for line in lines[1::2])
    # A child alone has nothing to start from, and says so.
    with pytest.raises(SystemExit) as exit_code:
        main(child)
    assert exit_code.value.code == 1
    assert "1 segment waits for one that is not done" in capsys.readouterr().out
    for command in (parent, child):
        main(command)
    assert (load_runs(tmp_path / "results").runs["state"] == "done").all()
    capsys.readouterr()
    main(args)
    assert not capsys.readouterr().out  # nothing is left to print


@pytest.mark.parametrize(
    "devices",
    [
        pytest.param(["0", "1"], id="two"),
        pytest.param(["0", "0"], id="one shared", marks=pytest.mark.slow),
    ],
)
def test_devices_of_one_machine_work_side_by_side(
    devices: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two processes where CUDA would have devices; here each trains on the CPU."""
    monkeypatch.setenv("PYTHONPATH", environment()["PYTHONPATH"])
    results, said = tmp_path / "results", list[str]()
    main([*PAIR, "--results", str(results), "--launcher", "print", "--fleet-size", "1"])
    commands = []
    for file in sorted(results.glob("jobs/*.json")):
        [segment] = read_segments(read_job(file), lambda name: RecallConfig)
        if segment.parent is None:
            job = Job(file, (segment,), 0, ())
            commands.append(Command(job, ["train", str(file), "--device=cpu", "--threads=1"]))
    Local(devices, cores=2).launch(commands, said.append)
    assert said == [f"device {device}: recall task 1, 1 run" for device in devices]
    states = [json.loads(f.read_text())["state"] for f in results.glob("segments/*/status.json")]
    assert states == ["done", "done"]


@pytest.mark.parametrize(("launcher", "package"), [("ray", "ray"), ("slurm", "submitit")])
def test_a_missing_extra_is_named_and_nothing_written(
    launcher: str, package: str, tmp_path: Path
) -> None:
    code = f"import sys; sys.modules[{package!r}] = None; from cwbench.cli import main; main()"
    args = [*PAIR, "--quiet", "--launcher", launcher, "--results", str(tmp_path / "results")]
    made = subprocess.run([sys.executable, "-c", code, *args], capture_output=True, text=True)
    assert made.returncode == 2
    assert f"pip install 'cwbench[{launcher}]'" in made.stderr and made.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["train", "nowhere.json"], "nowhere.json: no such file"),
        ([*PAIR, "--launcher", "slurm", "--slurm-set", "account"], "write NAME=VALUE"),
        ([*PAIR, "--launcher", "bus"], "'bus' is not one of"),
        ([*PAIR, "--device", "cpu", "--fleets-per-gpu", "2"], "--fleets-per-gpu is for GPUs"),
    ],
)
def test_bad_input(
    args: list[str], message: str, tmp_path: Path, capsys: Any, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as exit_code:
        main(args)
    assert exit_code.value.code == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_run_that_does_not_fit_is_refused(tmp_path: Path, capsys: Any, monkeypatch: Any) -> None:
    from cwbench.planning import estimate

    monkeypatch.setattr(estimate, "free_bytes", lambda device, processes: 1 << 20)
    with pytest.raises(SystemExit) as exit_code:
        main([*PAIR, "--results", str(tmp_path / "results")])
    assert exit_code.value.code == 2
    assert "1.0 MiB are free" in capsys.readouterr().err
    monkeypatch.setattr(estimate, "free_bytes", lambda device, processes: 3 << 20)
    main([*PAIR, "--results", str(tmp_path / "results"), "--dry-run", "--threads", "1"])
    # A run takes 0.6 to 1.7 MiB, so the two first tasks fit together and the four second do not.
    assert "6 to train in 3 fleets" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())
