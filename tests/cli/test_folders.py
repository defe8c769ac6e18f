"""Paths on the command line."""

from pathlib import Path

import click
import pytest

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
