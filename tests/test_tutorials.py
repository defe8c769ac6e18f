"""The tutorials' Python blocks run, in one script each, as their readers are told."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from cwbench.methods import find

TUTORIALS = sorted((Path(__file__).parent.parent / "docs" / "tutorials").glob("*.md"))


def script(page: Path) -> str:
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text("utf-8"), flags=re.M | re.S)
    return "\n\n".join(blocks)


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_blocks_are_python(page: Path) -> None:
    assert compile(script(page), page.name, "exec").co_names


def test_a_command_that_reads_the_tutorials_method_trains_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [page] = [page for page in TUTORIALS if page.stem == "own_method"]
    (tmp_path / "pull.py").write_text(script(page), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    name, entry = find("pull.py:Pull")
    assert (name, entry.summary[:5]) == ("Pull", "Pulls") and not Path("results").exists()


@pytest.mark.slow
@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_the_script_of_a_tutorial_runs(page: Path, tmp_path: Path) -> None:
    (tmp_path / "tutorial.py").write_text(script(page), encoding="utf-8")
    made = subprocess.run(
        [sys.executable, "tutorial.py"], cwd=tmp_path, capture_output=True, text=True
    )
    assert made.returncode == 0, made.stderr
