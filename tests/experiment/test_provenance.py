"""What is recorded about how a segment was trained."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from cwbench.experiment import provenance

PACKAGE = Path(__file__).resolve().parents[2] / "cwbench"
NOT_SOURCE = shutil.ignore_patterns("__pycache__")


def test_a_copy_of_the_source_can_be_told_its_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CWBENCH_COMMIT", "0123456789ab")
    cpu = torch.device("cpu")
    described = provenance.describe(
        "smoke", cpu, compiled=False, gradients="autograd", command="cwbench run"
    )
    assert described["versions"]["commit"] == "0123456789ab"
    assert described["command"] == "cwbench run" and described["protocol"] == "smoke"
    assert described["device"] == {"type": "cpu", "compiled": False, "gradients": "autograd"}
    monkeypatch.delenv("CWBENCH_COMMIT")
    assert provenance.commit() != "0123456789ab"


def test_a_copy_without_history_is_known_by_its_code(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    copies = []
    for name in ("first", "second"):
        shutil.copytree(PACKAGE, tmp_path / name / "cwbench", ignore=NOT_SOURCE)
        copies.append(_commit_of(tmp_path / name, monkeypatch))
    assert copies[0] == copies[1] and re.fullmatch("source:[0-9a-f]{12}", copies[0])
    changed = tmp_path / "second" / "cwbench" / "methods" / "ewc.py"
    changed.write_text(changed.read_text() + "# changed")
    assert _commit_of(tmp_path / "second", monkeypatch) != copies[0]


def _commit_of(folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.delenv("CWBENCH_COMMIT", raising=False)
    monkeypatch.setenv("PYTHONPATH", str(folder))
    code = "from cwbench.experiment.provenance import commit; print(commit())"
    made = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    return made.stdout.strip()
