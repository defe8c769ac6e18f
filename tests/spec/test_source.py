"""A class keeps the text that it was made from, whatever happens to its file."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from cwbench import methods
from cwbench.experiment.objects import find_method
from cwbench.spec.errors import UserError
from cwbench.spec.notebook_source import source_code
from cwbench.spec.source import file_source, short_hash

OWN = "from cwbench.learner import Method\nCOEF = 1\nclass Own(Method):\n    coef = COEF\n"


@pytest.fixture
def helper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """A module with a method, imported as Python does."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "source_helper.py").write_text(OWN)
    importlib.invalidate_caches()
    yield importlib.import_module("source_helper")
    del sys.modules["source_helper"]


def test_a_file_edited_after_its_import_is_refused_until_it_is_reloaded(
    helper: Any, tmp_path: Path
) -> None:
    file = tmp_path / "source_helper.py"
    _, _, entry = find_method(helper.Own)
    assert entry.source == short_hash(OWN.encode())
    changed = OWN.replace("COEF = 1", "COEF = 22")
    file.write_text(changed)
    with pytest.raises(UserError, match=r"source_helper.py has changed since Own was imported"):
        find_method(helper.Own)
    assert source_code(helper.Own) == OWN.encode()  # what is kept is what trains
    importlib.reload(helper)
    assert find_method(helper.Own)[2].source == short_hash(changed.encode())


@pytest.mark.usefixtures("helper")
def test_a_method_from_another_file_has_the_text_of_that_file(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("from source_helper import Own\n")
    _, entry = methods.load(f"{tmp_path}/mine.py:Own")
    assert entry.source == short_hash(OWN.encode()) == short_hash(source_code(entry.method))
    (tmp_path / "source_helper.py").write_text(OWN.replace("COEF = 1", "COEF = 22"))
    with pytest.raises(UserError, match=r"source_helper.py has changed since Own was imported"):
        methods.load(f"{tmp_path}/mine.py:Own")


@pytest.mark.usefixtures("helper")
def test_files_of_the_methods_it_derives_from_belong_to_a_method(tmp_path: Path) -> None:
    text = "from source_helper import Own\nclass Mine(Own):\n    pass\n"
    (tmp_path / "mine.py").write_text(text)
    _, entry = methods.load(f"{tmp_path}/mine.py:Mine")
    assert file_source(entry.method) == f"{text}\n{OWN}".encode()
    assert entry.source == short_hash(f"{text}\n{OWN}".encode())


def test_a_method_of_the_package_is_not_one_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("from cwbench.methods.ewc import EWC\n")
    with pytest.raises(UserError, match="EWC is a method of cwbench; give its name"):
        methods.load(f"{tmp_path}/mine.py:EWC")


def test_a_quick_edit_of_equal_size_is_loaded(tmp_path: Path) -> None:
    """Python's cache of compiled files does not see it: it compares size and whole seconds."""
    file = tmp_path / "mine.py"
    for coef in range(5):
        text = OWN.replace("COEF = 1", f"COEF = {coef}")
        file.write_text(text)
        _, entry = methods.load(f"{file}:Own")
        made: Any = entry.method
        assert (made.coef, entry.source) == (coef, short_hash(text.encode()))


def test_files_of_one_name_are_two_modules(tmp_path: Path) -> None:
    """The code of each stays where `sys.modules` leads, for pickles and for the kept source."""
    found = []
    for name in ("First", "Second"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "m.py").write_text(OWN.replace("Own", name))
        found.append(methods.load(f"{folder}/m.py:{name}")[1].method)
    for made in found:
        assert getattr(sys.modules[made.__module__], made.__name__) is made
