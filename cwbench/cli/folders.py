"""Folders and files that commands are given."""

from pathlib import Path
from typing import Any

import click

from cwbench.spec.errors import UserError
from cwbench.spec.text import as_command


class PathName(click.Path):
    """A path that has a name: `--results "$UNSET"` would otherwise mean the current folder."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            name = param.opts[0] if isinstance(param, click.Option) else "a path"
            raise UserError(f"{name} is empty", "write . for the current folder")
        return super().convert(value, param, ctx)


PATH = PathName(path_type=Path)


def existing(results: Path) -> Path:
    from cwbench.store.merge import ARCHIVES

    if results.is_file() and results.name.endswith(ARCHIVES):
        unpack = as_command("merge", results, "--into", "FOLDER")
        raise UserError(f"{results}: an archive, not a folder", f"{unpack} unpacks it")
    if not results.is_dir():
        raise UserError(f"{results}: no such folder", "`cwbench run` creates one")
    return results


def results_folder(folder: Path) -> Path:
    """An existing folder with results: in a mistyped one there is never anything to do."""
    from cwbench.store.results import is_results

    if not is_results(existing(folder)):
        raise UserError(f"{folder}: not a results folder", "it has no segments")
    return folder


def writable(folder: Path) -> Path:
    """A folder to write to, which need not exist yet; checked before long work is done for it."""
    from cwbench.experiment.results_folder import check_writable

    check_writable(folder)
    return folder
