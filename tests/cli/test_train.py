"""Job files of launchers."""

import json
from pathlib import Path
from typing import Any

import pytest
from strangers import evil_file, fails


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
