"""Results folders that cannot be written to are refused before anything is trained."""

from pathlib import Path

import pytest

from cwbench.experiment.results_folder import folder_named, open_store
from cwbench.spec.errors import UserError


def test_a_new_folder_is_not_made_yet(tmp_path: Path) -> None:
    assert open_store(tmp_path / "a" / "b").root == tmp_path / "a" / "b"
    assert not list(tmp_path.iterdir())


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="file is a file, not a folder"):
        open_store(tmp_path / "file" / "results")


@pytest.mark.parametrize("name", ["link", "link/below"])
def test_a_link_to_nothing_is_named(name: str, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/nowhere/at/all")
    with pytest.raises(UserError, match="link is a link to /nowhere/at/all, which is not there"):
        open_store(tmp_path / name)


def test_what_cannot_be_written_is_refused() -> None:
    with pytest.raises(UserError, match=r"results folder /proc/x: /proc is not writable"):
        open_store(Path("/proc/x"))


def test_an_empty_name_is_a_mistake() -> None:
    assert folder_named(".") == Path()
    with pytest.raises(UserError, match="name is empty"):
        folder_named("")
