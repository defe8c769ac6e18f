"""Paths on the command line."""

from pathlib import Path

import click
import pytest

from cwbench.cli import main
from cwbench.cli.folders import PATH, existing
from cwbench.spec.errors import UserError


def test_an_empty_path_is_not_the_current_folder() -> None:
    option = click.Option(["--results"])
    assert PATH.convert(".", option, None) == Path()
    with pytest.raises(UserError, match="--results is empty"):
        PATH.convert("", option, None)


def test_a_folder_must_be_there(tmp_path: Path) -> None:
    assert existing(tmp_path) == tmp_path
    with pytest.raises(UserError, match="no such folder; `cwbench run` creates one"):
        existing(tmp_path / "nowhere")


@pytest.mark.parametrize("command", ["status", "doctor", "verify", "clean"])
def test_an_archive_is_not_a_folder_that_is_not_there(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    archive = tmp_path / "study.tar.gz"
    archive.write_bytes(b"\x1f\x8b\x08")
    with pytest.raises(SystemExit) as ended:
        main([command, str(archive)])
    assert ended.value.code == 2
    assert capsys.readouterr().err == (
        f"cwbench: {archive}: an archive, not a folder; "
        f"`cwbench merge {archive} --into FOLDER` unpacks it\n"
    )
