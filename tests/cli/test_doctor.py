"""What `cwbench doctor` says about packages and compilers."""

from importlib import metadata
from pathlib import Path

import pytest

from cwbench.cli.doctor import _compiler, _package
from cwbench.learner.compiler import missing_compiler


def test_a_missing_package_comes_with_its_remedy() -> None:
    found = _package("no_such_package", exact=False, wanted={"no_such_package": "2"})
    assert found == ("missing", "pip install no_such_package>=2")


def test_only_exact_versions_give_the_same_results(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = {"mujoco": "3.3.0", "numpy": "2"}
    monkeypatch.setattr(metadata, "version", lambda name: "3.3.1")
    version, note = _package("mujoco", exact=True, wanted=wanted)
    assert version == "3.3.1" and note == "results need 3.3.0: pip install mujoco==3.3.0"
    assert _package("numpy", exact=False, wanted=wanted) == ("3.3.1", "")


@pytest.mark.parametrize(("program", "state"), [("g++", "found"), ("c++", "none")])
@pytest.mark.usefixtures("without_compilers")
def test_the_compiler_is_the_one_that_torch_takes(
    program: str, state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / program).write_text("#!/bin/sh\n")
    (tmp_path / program).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert _compiler()[0] == state
    assert bool(missing_compiler("cpu")) == (state == "none")
