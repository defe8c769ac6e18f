"""Job files of launchers."""

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from strangers import evil_file, fails

import cwbench


@pytest.fixture
def evil(tmp_path: Path) -> Path:
    return evil_file(tmp_path)


def test_a_job_file_runs_code_only_with_trust(
    evil: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job = tmp_path / "job.json"
    names = ("method_options", "sac", "network", "env", "schedule")
    groups: dict[str, Any] = {key: {} for key in names}
    entry = {"schema": 1, "method": "Pull", "seed": 0, "tasks": [], "joint": False}
    segments = [groups | entry]
    record = {"schema": 1, "segments": segments, "protocol": "smoke", "command": "x"}
    job.write_text(json.dumps(record | {"methods": {"Pull": f"{evil}:Pull"}}))
    said = fails(["train", str(job)], capsys)
    assert f"would run code that a record names: {evil}:Pull; give --trust" in said
    assert said.count("\n") == 1 and not (tmp_path / "ran").exists()
    said = fails(["train", str(job), "--trust"], capsys)
    assert f"running code that a record names: {evil}:Pull" in said and (tmp_path / "ran").exists()


def test_a_job_names_methods_and_segments(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job = tmp_path / "job.json"
    record = {"schema": 1, "methods": {}, "segments": [], "protocol": "smoke", "command": "x"}
    job.write_text(json.dumps(record))
    assert "it names no methods or no segments" in fails(["train", str(job)], capsys)
    job.write_text(json.dumps(record | {"methods": {"l2": "l2"}, "segments": [3]}))
    assert "its segments are damaged" in fails(["train", str(job)], capsys)


OWN_ENV = "from countdown import Countdown\nclass Own(Countdown):\n    later = 1\n"


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        ("later = = 1", "cannot import '{name}:Own': {file} line 3: SyntaxError: invalid syntax"),
        ("later = 2", "task own: {name}:Own has changed since the job was written"),
    ],
)
def test_a_job_whose_environment_was_edited_says_so(
    edit: str,
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It trained other segments than those of the job, or called the job damaged."""
    name = f"job_{tmp_path.name}"
    file = tmp_path / f"{name}.py"
    file.write_text(OWN_ENV)
    monkeypatch.syspath_prepend(tmp_path)
    task = cwbench.Task("own", importlib.import_module(name).Own, horizon=10)
    small: dict[str, Any] = {"protocol": "smoke", "width": 8, "launcher": "print"}
    small["results"] = tmp_path / "results"
    cwbench.train(cwbench.plan("finetuning", [task], **small), quiet=True)
    [job] = (tmp_path / "results" / "jobs").iterdir()
    file.write_text(OWN_ENV.replace("later = 1", edit))
    monkeypatch.delitem(sys.modules, name)
    said = fails(["train", str(job), "--trust"], capsys)
    assert f"{job}: {words.format(name=name, file=file)}" in said
    assert not (tmp_path / "results" / "segments").exists()
