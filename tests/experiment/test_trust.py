"""Code that a record names does not run unless the user says so."""

import json
from pathlib import Path
from typing import Any

import pytest

from cwbench.cli import main
from cwbench.experiment.trust import check_trust, named_code
from cwbench.sequences.gymnasium import PHYSICS
from cwbench.spec.errors import UserError

EVIL = "from pathlib import Path\nPath(__file__).with_name('ran').touch()\nclass Pull: pass\n"


def fails(args: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as ended:
        main(args)
    assert ended.value.code == 2
    return capsys.readouterr().err


@pytest.fixture
def evil(tmp_path: Path) -> Path:
    file = tmp_path / "evil.py"
    file.write_text(EVIL)
    return file


def test_a_job_file_runs_code_only_with_trust(
    evil: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job = tmp_path / "job.json"
    segments = [{"env": {}, "method": "Pull"}]
    record = {"schema": 1, "segments": segments, "protocol": "smoke", "command": "x"}
    job.write_text(json.dumps(record | {"methods": {"Pull": f"{evil}:Pull"}}))
    said = fails(["train", str(job)], capsys)
    assert f"would run code that a record names: {evil}:Pull; give --trust" in said
    assert said.count("\n") == 1 and not (tmp_path / "ran").exists()
    said = fails(["train", str(job), "--trust"], capsys)
    assert f"running code that a record names: {evil}:Pull" in said and (tmp_path / "ran").exists()


def test_retry_never_runs_a_file_that_a_record_names(
    evil: Path, toy_run: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "results"
    store, plan, _ = toy_run(root, tasks=("reach-0-x",))  # fails
    from cwbench.spec.segment import setup_digest

    file = store.folder(plan.segments[0]).path / "segment.json"
    record = json.loads(file.read_text())
    before = setup_digest(record)
    record["method"] = f"{evil}:Pull"
    file.write_text(json.dumps(record))
    [experiment] = root.glob("experiments/*")
    experiment.write_text(experiment.read_text().replace(before, setup_digest(record)))
    capsys.readouterr()
    for further in ([], ["--dry-run"], ["--trust"]):
        assert "a record names the file" in fails(["retry", str(root), *further], capsys)
    assert not (tmp_path / "ran").exists()


def test_environments_that_records_name_need_trust() -> None:
    tasks = [
        {"id": "HalfCheetah-v5", "wrappers": [{"wrapper": PHYSICS, "kwargs": {}}]},
        {"id": "evil:Env-v0", "wrappers": ["evil:Wrapper"]},
        {"callable": "os:system", "wrappers": []},
    ]
    names = list(named_code("recall", {"tasks": tasks}))
    assert names == ["evil:Env-v0", "evil:Wrapper", "os:system"]
    with pytest.raises(UserError, match="evil:Env-v0, evil:Wrapper, os:system"):
        check_trust(names, False, print)
    check_trust(named_code("recall", {"tasks": tasks[:1]}), False, print)
