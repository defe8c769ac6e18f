"""The commit of the code: of a checkout, of a copy of one, and as it is named."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "cwbench"
PRINT = "from cwbench.spec.commit import *; print(commit(), commit_and_changes())"


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The package without history."""
    monkeypatch.delenv("CWBENCH_COMMIT", raising=False)
    ignored = shutil.ignore_patterns("__pycache__")
    return Path(shutil.copytree(PACKAGE, tmp_path / "copy" / "cwbench", ignore=ignored))


def trained_and_reported(package: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What records and reports made by a copy of the package say."""
    monkeypatch.setenv("PYTHONPATH", str(package.parent))
    made = subprocess.run([sys.executable, "-P", "-c", PRINT], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    return made.stdout.split()


def test_a_copy_without_history_is_known_by_its_code(
    copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Path(shutil.copytree(copy, tmp_path / "other" / "cwbench"))
    trained, reported = trained_and_reported(copy, monkeypatch)
    assert trained == reported and re.fullmatch("source:[0-9a-f]{12}", trained)
    assert trained_and_reported(other, monkeypatch) == [trained, trained]
    changed = other / "methods" / "ewc.py"
    changed.write_text(changed.read_text() + "# changed")
    assert trained_and_reported(other, monkeypatch)[0] != trained


@pytest.mark.parametrize("named", ["0123456789ab", "0123456789abcdef0123456789abcdef01234567"])
def test_a_named_commit_is_recorded_and_reported(
    named: str, copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its whole name as git shortens it, so that no report shows two names of one commit."""
    monkeypatch.setenv("CWBENCH_COMMIT", named)
    assert trained_and_reported(copy, monkeypatch) == ["0123456789ab"] * 2


def test_reports_mark_a_checkout_that_was_changed(
    copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def git(*arguments: str) -> str:
        named = ("-c", "user.name=me", "-c", "user.email=me@example.com")
        command = ["git", "-C", str(copy.parent), *named, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    git("init")
    assert trained_and_reported(copy, monkeypatch)[0].startswith("source:")  # not its history
    git("add", "cwbench")
    git("commit", "-m", "All of it")
    commit = git("rev-parse", "--short=12", "HEAD")
    assert trained_and_reported(copy, monkeypatch) == [commit, commit]
    with (copy / "__init__.py").open("a") as file:
        file.write("# changed")
    assert trained_and_reported(copy, monkeypatch) == [commit, f"{commit}+"]
