"""The command line as a user meets it: bad input, real Meta-World runs, Ctrl-C."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from commands import cwbench, environment

from cwbench.cli import main
from cwbench.cli.run import _peek
from cwbench.methods import METHODS
from cwbench.spec.config import SACConfig, ScheduleConfig
from cwbench.spec.options import field_names
from cwbench.spec.segment import SCHEMA
from cwbench.store.runs import load_runs

pytestmark = pytest.mark.commands

ROOT = Path(__file__).parent.parent.parent
TINY = ["--width", "16", "--batch-size", "8", "--eval-episodes", "1", "--update-after", "20"]
TINY += ["--start-steps", "20", "--seeds", "3", "--method", "finetuning"]


RUN = ["run", "--method", "finetuning", "--seq", "cw3-1"]


@pytest.mark.skipif(torch.cuda.is_available(), reason="a machine with a GPU")
def test_no_gpu(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_code:
        main([*RUN, "--device", "cuda", "--results", str(tmp_path / "results")])
    assert exit_code.value.code == 2
    [line] = capsys.readouterr().err.splitlines()
    assert "no CUDA device is available; use --device cpu or auto" in line
    assert not list(tmp_path.iterdir())


def test_results_folder_that_cannot_be_used(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "file"
    file.write_text("mine")
    newer = tmp_path / "newer" / "experiments"
    newer.mkdir(parents=True)
    (newer / "x.json").write_text(json.dumps({"schema": SCHEMA + 1, "name": "x", "runs": []}))
    for folder, message in (
        (file, "is a file"),
        (file / "below", "is a file"),
        (newer.parent, "newer cwbench"),
    ):
        with pytest.raises(SystemExit) as exit_code:
            main([*RUN, "--results", str(folder)])
        assert exit_code.value.code == 2
        assert message in capsys.readouterr().err
    assert file.read_text() == "mine"


def test_results_folder_that_is_not_writable(tmp_path: Path) -> None:
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o555)
    command = [sys.executable, "-m", "cwbench", *RUN, "--results", str(locked / "results")]
    if os.geteuid() == 0:  # the super-user may write anywhere, unless that right is taken away
        if not shutil.which("setpriv"):
            pytest.skip("needs setpriv to give up the super-user's rights")
        command = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", *command]
    made = subprocess.run(command, capture_output=True, text=True, env=environment())
    assert made.returncode == 2
    problem = f"results folder {locked / 'results'}: {locked} is not writable (Permission denied)"
    assert made.stderr == f"cwbench: {problem}; use another folder\n"
    assert not list(locked.iterdir())


def test_help_shows_the_defaults_that_will_hold(capsys: pytest.CaptureFixture[str]) -> None:
    main(["run", "--method", "finetuning", "--protocol", "compact", "--help"])
    text = re.sub(r"\s+", " ", capsys.readouterr().out)
    assert "Environment steps per task. [default: 250000]" in text
    assert "Transitions per update. [default: 128]" in text


def test_dry_run_says_what_it_would_do_and_writes_nothing(tmp_path: Path) -> None:
    made = cwbench(*RUN, "--seeds", "0-4", "--dry-run", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    assert "5 runs = 15 segments, 0 done, 15 to train in 3 fleets" in made.stdout
    # 5 seeds x (1 + 2 + 3 tasks) x 50 evaluations x 10 episodes x 200 steps
    assert "steps: 15,000,000 training + 3,000,000 evaluation; updates: 14,985,000" in made.stdout
    assert "memory: host" in made.stdout and "about" in made.stdout
    assert not list(tmp_path.iterdir())


def test_real_tasks_train_stop_and_continue_to_the_same_numbers(tmp_path: Path) -> None:
    """Meta-World in worker processes; Ctrl-C in the middle of the second task."""
    args = ["run", *TINY, "--seq", "push,window-close", "--steps-per-task", "700"]
    args += ["--eval-every", "350", "--threads", "1"]
    main([*args, "--results", str(tmp_path / "whole"), "--quiet", "--no-live"])
    command = [sys.executable, "-m", "cwbench", *args, "--results", str(tmp_path / "parts")]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=environment() | {"PYTHONUNBUFFERED": "1"}
    )
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and not _past_first_task(tmp_path / "parts"):
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=30)
    assert process.returncode == 1
    assert "to continue: cwbench run" in output
    found = load_runs(tmp_path / "parts")
    assert found.runs["done"].tolist() == [1] and found.runs["state"].tolist() == ["stopped"]
    main([*args, "--results", str(tmp_path / "parts"), "--quiet"])
    one, other = load_runs(tmp_path / "whole").evals, load_runs(tmp_path / "parts").evals
    assert len(one) == 2 * 1 + 2 * 2
    assert one.equals(other)


def _past_first_task(root: Path) -> bool:
    """Whether the second task has begun and taken some steps."""
    return any(root.glob("segments/finetuning-2-*/train.csv")) or any(
        json.loads(file.read_text())["state"] == "running"
        for file in root.glob("segments/finetuning-2-*/status.json")
    )


def test_a_method_from_a_users_file(tmp_path: Path) -> None:
    """The example: its options parse, and a strong pull keeps the weights where they were."""
    method = f"{ROOT / 'examples' / 'pull.py'}:Pull"
    small = [
        *TINY[:-2],
        "--method",
        method,
        "--seq",
        "push,window-close",
        "--steps-per-task",
        "300",
        "--threads",
        "1",
    ]
    moved = {}
    for coef in ("0", "1000"):
        results = tmp_path / coef
        main(["run", *small, "--coef", coef, "--results", str(results), "--quiet", "--no-live"])
        moved[coef] = _distance(results)
    assert moved["1000"] < 0.5 * moved["0"]
    record = json.loads(next(results.glob("segments/*/segment.json")).read_text())
    assert record["method"] == "Pull" and record["method_options"] == {"coef": 1000.0}
    assert re.fullmatch("[0-9a-f]{12}", record["source"])


def _distance(results: Path) -> float:
    from cwbench.store import checkpoint

    first, second = (
        checkpoint.load(next(results.glob(f"segments/Pull-{n}-*/end.safetensors")))[0]
        for n in (1, 2)
    )
    name = "trainer/actor.1.weight"
    return float((first[name] - second[name]).norm())


def test_methods_of_other_packages_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An installed distribution with an entry point in the group `cwbench.methods`."""
    (tmp_path / "otherpackage.py").write_text((ROOT / "examples" / "pull.py").read_text())
    info = tmp_path / "otherpackage-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: otherpackage\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[cwbench.methods]\npull = otherpackage:Pull\n")
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}{os.pathsep}{tmp_path}")
    command = [sys.executable, "-m", "cwbench"]
    listed = subprocess.run([*command, "methods"], capture_output=True, text=True, check=True)
    assert re.search(r"pull +Pulls the actor's shared layers", listed.stdout)
    args = ["run", "--method", "pull", "--seq", "cw3-1", "--coef", "2", "--dry-run"]
    planned = subprocess.run([*command, *args], capture_output=True, text=True, cwd=tmp_path)
    assert planned.returncode == 0, planned.stderr


def test_values_of_a_method_with_presets_of_its_own_are_checked_with_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its smaller batches fit into a memory that others' do not fit into."""
    file = tmp_path / "small.py"
    file.write_text(
        "from cwbench.learner import Method\n\n\nclass Small(Method):\n"
        '    """A method."""\n\n    preset = {"batch_size": 8}\n'
    )
    command = f"run --method {file}:Small --seq point3 --protocol demo --threads 1 --dry-run"
    main([*command.split(), "--results", str(tmp_path / "results"), "--buffer-size", "100"])
    assert "1 run = 3 segments" in capsys.readouterr().out


def test_presets_of_built_in_methods_allow_nothing_that_defaults_forbid() -> None:
    """Values that are refused with defaults are refused before a method is imported."""
    for name, entry in METHODS.items():
        preset = {**entry.method.preset, **entry.options}
        assert preset.get("batch_size", SACConfig().batch_size) >= SACConfig().batch_size, name
        others = {"buffer_size", "width", "layers", "hidden", *field_names(ScheduleConfig)}
        assert not others & preset.keys(), name


def test_the_last_of_several_values_holds() -> None:
    args = ["--width=3", "--width", "4", "--width=5", "--other", "--width"]
    assert _peek(args, "--width") == ["3", "4", "5"]
