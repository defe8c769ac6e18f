"""What `cwbench doctor` says about packages."""

from importlib import metadata

import pytest

from cwbench.cli.doctor import _package


def test_a_missing_package_comes_with_its_remedy() -> None:
    found = _package("no_such_package", exact=False, wanted={"no_such_package": "2"})
    assert found == ("missing", "pip install no_such_package>=2")


def test_only_exact_versions_give_the_same_results(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = {"mujoco": "3.3.0", "numpy": "2"}
    monkeypatch.setattr(metadata, "version", lambda name: "3.3.1")
    version, note = _package("mujoco", exact=True, wanted=wanted)
    assert version == "3.3.1" and note == "results need 3.3.0: pip install mujoco==3.3.0"
    assert _package("numpy", exact=False, wanted=wanted) == ("3.3.1", "")
