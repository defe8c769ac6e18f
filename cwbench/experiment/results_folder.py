"""Opening a results folder to write to it."""

import tempfile
from dataclasses import replace
from pathlib import Path

from cwbench.spec.errors import UserError, located
from cwbench.store.results import Store


def open_store(folder: Path) -> Store:
    """A results folder that can be written to."""
    with located(f"results folder {folder}"):
        check_writable(folder)
        check_version(folder)
    return Store(folder)


def anchored(store: Store) -> Store:
    """The same results folder, wherever the working directory is later."""
    return replace(store, root=store.root.absolute())


def check_version(folder: Path) -> None:
    """UserError if a later version of cwbench has written to a results folder."""
    if newer := Store(folder).newer_schema():
        hint = "upgrade, or use another folder"
        raise UserError(f"{newer} was written by a newer cwbench", hint)


def check_writable(folder: Path) -> None:
    """UserError if a folder, which need not exist yet, cannot be written to."""
    for path in (folder, *folder.parents):
        if path.is_symlink() and not path.exists():
            hint = "remove the link, or make what it points to"
            raise UserError(f"{path} is a link to {path.readlink()}, which is not there", hint)
    parent = next(p for p in [folder, *folder.resolve().parents] if p.exists())
    if not parent.is_dir():
        raise UserError(f"{parent} is a file, not a folder")
    try:  # permissions alone say nothing about /proc, or of root
        Path(tempfile.mkdtemp(prefix=".cwbench-", dir=parent)).rmdir()
    except OSError as error:
        problem = f"{parent} is not writable ({error.strerror})"
        raise UserError(problem, "use another folder") from None


def folder_named(text: str | Path, what: str = "results folder") -> Path:
    """A folder by name. An empty one is a mistake, though `Path("")` is the current folder."""
    if not isinstance(text, str | Path):
        raise UserError(f"{text!r:.60} is not a {what}", "give its path")
    if text == "":
        raise UserError(f"the {what}'s name is empty", 'write "." for the current folder')
    return Path(text)
