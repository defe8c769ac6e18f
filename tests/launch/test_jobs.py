"""Job files, and the order of jobs."""

import json
from pathlib import Path

import pytest

from cwbench.cli import main
from cwbench.launch.jobs import read_job
from cwbench.methods.recall import RecallConfig
from cwbench.spec.errors import UserError
from cwbench.spec.segment import Segment

PAIR = ["pairwise", "--tasks", "2,5", "--method", "recall", "--protocol", "smoke", "--yes"]


@pytest.mark.commands
def test_a_record_gives_back_its_segment(tmp_path: Path) -> None:
    main([*PAIR, "--results", str(tmp_path), "--launcher", "print"])
    records = [json.loads(file.read_text()) for file in sorted(tmp_path.glob("jobs/*.json"))]
    for entry in [entry for record in records for entry in record["segments"]]:
        assert Segment.from_record(entry, RecallConfig).record() == entry


RECORD = {"schema": 1, "methods": {}, "segments": [], "protocol": "smoke", "command": "x"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not a job file"),
        ("[" * 100_000, "not a job file"),
        ("[]", "not a job file"),
        (json.dumps({"schema": 1}), "not a job file"),
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
