"""The wheel, installed into an environment of its own and used from another directory.

`make wheel-test` runs it. The folders methods/, sequences/ and reports/ are links inside cwbench/,
so a checkout works where a wheel may not.
"""

import os
import shutil
import site
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SMALL = "--steps-per-task 60 --update-after 20 --start-steps 20 --eval-episodes 1 --workers 1"
COMMIT = "0123456789ab"

pytestmark = pytest.mark.slow


def call(*command: str, cwd: Path) -> str:
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "CWBENCH_COMMIT")}
    made = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)
    assert made.returncode == 0, made.stdout + made.stderr
    return made.stdout


@pytest.fixture(scope="module")
def bin_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Programs of a new environment with the wheel; dependencies come from this environment."""
    folder = tmp_path_factory.mktemp("wheel")
    ignored = shutil.ignore_patterns(".venv", ".git", "build", "*.egg-info", "*_cache", "results")
    shutil.copytree(ROOT, folder / "source", symlinks=True, ignore=ignored)
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check")
    build = ("wheel", "-q", "--no-deps", "--no-build-isolation", "-w", "dist", "./source")
    call("env", f"CWBENCH_COMMIT={COMMIT}", *pip, *build, cwd=folder)
    [wheel] = (folder / "dist").glob("*.whl")
    venv.create(folder / "env", symlinks=True)
    python = folder / "env" / "bin" / "python"
    call(*pip, f"--python={python}", "install", "-q", "--no-deps", str(wheel), cwd=folder)
    [packages] = (folder / "env").glob("lib/python*/site-packages")
    # A path in a .pth file: .pth files over there, such as an editable install of ours, do not act.
    (packages / "dependencies.pth").write_text("\n".join(site.getsitepackages()))
    return python.parent


def test_the_wheel_is_what_is_imported(bin_folder: Path, tmp_path: Path) -> None:
    code = "import cwbench, cwbench.methods; print(cwbench.__file__, cwbench.methods.__file__)"
    printed = call(str(bin_folder / "python"), "-c", code, cwd=tmp_path).split()
    assert all(Path(file).is_relative_to(bin_folder.parent) for file in printed)


def test_the_wheel_knows_its_commit(bin_folder: Path, tmp_path: Path) -> None:
    code = "from cwbench.spec.commit import commit, commit_and_changes\n"
    code += "print(commit(), commit_and_changes())"
    printed = call(str(bin_folder / "python"), "-c", code, cwd=tmp_path).split()
    assert printed == [COMMIT, COMMIT]


def test_commands_of_the_wheel_list_train_and_report(bin_folder: Path, tmp_path: Path) -> None:
    cwbench = str(bin_folder / "cwbench")
    assert "cw3" in call(cwbench, "experiment", "list", cwd=tmp_path)
    assert "recall" in call(cwbench, "methods", cwd=tmp_path)
    train = f"run --method recall --seq push,hammer --protocol smoke {SMALL}"
    call(cwbench, *train.split(), cwd=tmp_path)
    call(cwbench, "report", "results", "report", "--compare", "paper", cwd=tmp_path)
    assert "<html" in (tmp_path / "report" / "index.html").read_text()
    assert len(list((tmp_path / "report" / "figures").glob("*.pdf"))) > 0
