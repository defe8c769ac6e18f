"""Job files, and the order of jobs."""

import json
from pathlib import Path
from typing import Any

import pytest

from cwbench.cli import main
from cwbench.launch.jobs import read_job, read_segments
from cwbench.methods.recall import RecallConfig
from cwbench.spec.config import NetworkConfig, PointMassConfig, SACConfig, ScheduleConfig
from cwbench.spec.errors import UserError
from cwbench.spec.segment import Segment, Setup

PAIR = ["pairwise", "--tasks", "2,5", "--method", "recall", "--protocol", "smoke", "--yes"]


@pytest.mark.commands
def test_a_record_gives_back_its_segment(tmp_path: Path) -> None:
    main([*PAIR, "--results", str(tmp_path), "--launcher", "print"])
    records = [json.loads(file.read_text()) for file in sorted(tmp_path.glob("jobs/*.json"))]
    for entry in [entry for record in records for entry in record["segments"]]:
        assert Segment.from_record(entry, RecallConfig).record() == entry


SETUP = Setup(
    "recall", RecallConfig(), SACConfig(), NetworkConfig(), PointMassConfig(), ScheduleConfig()
)
ENTRY = Segment(SETUP, 0, ("reach-0-1", "reach-2-1000")).record()
RECORD = {
    "schema": 1,
    "methods": {"recall": "recall"},
    "segments": [ENTRY],
    "protocol": "smoke",
    "command": "x",
}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not a job file"),
        ("[" * 100_000, "not a job file"),
        ("[]", "not a job file"),
        (json.dumps({"schema": 1}), "not a job file"),
        (json.dumps(RECORD | {"schema": "1"}), "not a job file"),
        (json.dumps(RECORD | {"methods": []}), "not a job file"),
        (json.dumps(RECORD | {"methods": {"recall": 3}}), "its segments are damaged"),
        (json.dumps(RECORD | {"segments": [3]}), "its segments are damaged"),
        (json.dumps(RECORD | {"schema": 99}), "written by a newer cwbench"),
    ],
)
def test_what_is_no_job_file_is_refused(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "job.json"
    file.write_text(text)
    with pytest.raises(UserError, match=message):
        read_job(file)
    file.write_text(json.dumps(RECORD))
    assert read_job(file) == RECORD


@pytest.mark.parametrize(
    "change",
    [
        {"env": "x"},
        {"sac": []},
        {"env": ["a"]},
        {"method": None},
        {"tasks": []},
        {"tasks": [1]},
        {"seed": "x"},
        {"schedule": ENTRY["schedule"] | {"steps_per_task": None}},
        {"schedule": ENTRY["schedule"] | {"eval_every": -1}},
        {"network": ENTRY["network"] | {"hidden": "a,b"}},
    ],
)
def test_a_segment_with_something_else_is_refused(change: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "job.json"
    file.write_text(json.dumps(RECORD))
    assert read_segments(read_job(file), lambda _: RecallConfig)[0].record() == ENTRY
    file.write_text(json.dumps(RECORD | {"segments": [ENTRY | change]}))
    with pytest.raises(UserError):
        read_segments(read_job(file), lambda _: RecallConfig)
