"""What is installed is imported; anything else ends with the command that installs it."""

from pathlib import Path

import pytest

from cwbench.spec.errors import UserError
from cwbench.spec.extras import extra, is_installed


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory that modules are imported from, as with `python -m cwbench`."""
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def test_a_package_is_imported(here: Path) -> None:
    (here / "courier_1.py").write_text("PRICE = 3")
    assert is_installed("courier_1") and extra("courier_1", "cwbench[post]").PRICE == 3


def test_a_folder_of_that_name_is_no_package(here: Path) -> None:
    (here / "courier_2").mkdir()
    __import__("courier_2")  # Python does import it
    with pytest.raises(
        UserError, match=r"^courier_2 is not installed; pip install 'cwbench\[post]'$"
    ):
        extra("courier_2", "cwbench[post]")


def test_a_package_that_lacks_another_names_it(here: Path) -> None:
    (here / "courier_3.py").write_text("import courier_4")
    with pytest.raises(UserError, match=r"^courier_3 cannot be imported: No module .*'courier_4'"):
        extra("courier_3", "cwbench[post]")
