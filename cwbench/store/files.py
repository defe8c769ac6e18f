"""Files that survive crashes, power cuts and damage, and names that stay inside a folder.

A file is written under a temporary name, synced and renamed, so it is there whole or not at all.
What counts on a file is written after that file has been synced.
"""

import errno
import fnmatch
import json
import os
import re
import stat
import uuid
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cwbench.spec.errors import UserError

REPAIR = "`cwbench repair RESULTS` sets it aside"
# One part of a path, as this program writes them: no separator, no control character, not hidden.
NAME = re.compile(r"[^\s./\\\x00-\x1f\x7f][^/\\\x00-\x1f\x7f]{0,254}")
BLOCK = 1 << 20


class Unusable(UserError):
    """A file of a results folder from which nothing can be read, and what to do about it."""

    def __init__(self, path: Path, reason: str, hint: str) -> None:
        super().__init__(f"{path}: {reason}", hint)
        self.path, self.reason = path, reason


class Damaged(Unusable):
    """A file of a results folder that does not hold what was written to it."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(path, reason, REPAIR)


class Unreadable(Unusable):
    """A file or folder that another user keeps to themselves. It may be intact."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, "not readable for you; ask its owner", "")


# Writing


def hidden(path: Path) -> Path:
    """A new name in the folder of `path` that readers pass over and `cwbench clean` removes."""
    # The start of a name only: with 40 characters of four bytes it is no longer than allowed.
    return path.with_name(f".{path.name[:40]}.{uuid.uuid4().hex[:12]}")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary file to write; it takes the place of `path` when the block ends well."""
    temporary = hidden(path)
    try:
        yield temporary
        sync(temporary)
        temporary.replace(path)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise naming(path, error) from error
        raise


@contextmanager
def naming_errors(folder: Path) -> Iterator[None]:
    """Name the folder in errors that name no file, such as those of a full disk."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            raise naming(folder, error) from error
        raise


def naming(path: Path, error: OSError) -> OSError:
    """The same error with the file that could not be written."""
    number = error.errno or errno.ENOSPC  # numpy says only that fewer bytes were written
    return OSError(number, os.strerror(number), str(path))


def sync(path: Path) -> None:
    """Wait until a file's content, or the names in a folder, are on the disk."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except PermissionError:
        if path.is_dir():  # one that may be passed but not listed, such as /home
            return
        raise
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # not every system syncs folders
            raise
    finally:
        os.close(descriptor)


def sync_tree(folder: Path) -> None:
    """Wait until all files in a folder, and their names, are on the disk."""
    for path in folder.rglob("*"):
        if not path.is_symlink() and (path.is_file() or path.is_dir()):
            sync(path)
    sync(folder)


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Replace a file in one step, so that a reader or a crash never sees half of it."""
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def write_array(path: Path, array: NDArray[Any]) -> None:
    with replacing(path) as temporary, temporary.open("wb") as stream:
        np.save(stream, array, allow_pickle=False)


# Reading


def unusable(path: Path, error: OSError) -> Unusable:
    """What an error of reading says about a file."""
    if isinstance(error, PermissionError):
        return Unreadable(path)
    return Damaged(path, str(error.strerror))


def entries(folder: Path, pattern: str = "*") -> list[Path]:
    """What is in a folder under names of this pattern, sorted; nothing if there is no folder.

    Unreadable if it may not be listed: to `Path.glob` it would be empty.
    """
    try:
        names = os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise unusable(folder, error) from None
    return sorted(folder / name for name in fnmatch.filter(names, pattern))


def may_exist(path: Path) -> bool:
    """Whether something is there, or that cannot be told: reading it then says why."""
    try:
        path.stat()
    except OSError as error:
        return error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
    return True


def is_file(path: Path) -> bool:
    """Whether there is a regular file; Unusable if something else is in its place."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return False
    except OSError as error:
        raise unusable(path, error) from None
    if not stat.S_ISREG(mode):
        raise Damaged(path, "not a file")
    return True


def read_bytes(path: Path) -> bytes:
    """The content of a regular file. Unusable, never blocked, where it cannot be read."""
    if not is_file(path):
        raise FileNotFoundError(errno.ENOENT, "no such file", str(path))
    try:
        return path.read_bytes()
    except OSError as error:
        raise unusable(path, error) from None


def read_json(path: Path) -> dict[str, Any]:
    content = read_bytes(path)
    try:
        record = json.loads(content)
    except (ValueError, RecursionError):
        raise Damaged(path, "empty" if not content else "not JSON") from None
    if not isinstance(record, dict):
        raise Damaged(path, f"expected a record, found {type(record).__name__}")
    return record


def read_array(path: Path) -> NDArray[Any]:
    """An array whose data stay on the disk until they are used."""
    if not is_file(path):
        raise Damaged(path, "missing")
    try:
        array: NDArray[Any] = np.load(path, mmap_mode="c", allow_pickle=False)
    except PermissionError:
        raise Unreadable(path) from None
    except Exception as error:  # numpy lets any error of reading the header through
        raise Damaged(path, f"not an array ({type(error).__name__})") from None
    return array


# Checksums


def checksum(path: Path, length: int | None = None) -> str:
    """CRC-32 of a file, or of its first bytes: against damage, not against forgery."""
    value, left = 0, length
    with path.open("rb") as stream:
        while block := stream.read(BLOCK if left is None else min(BLOCK, left)):
            value = zlib.crc32(block, value)
            left = None if left is None else left - len(block)
    return f"crc32:{value:08x}"


def check(path: Path, expected: str | None, length: int | None = None) -> None:
    """Unusable unless a file has the checksum recorded for it. None: none was recorded."""
    if expected is None:
        return
    if not is_file(path):
        raise Damaged(path, "missing")
    if length is not None and path.stat().st_size < length:
        raise Damaged(path, f"{path.stat().st_size} bytes, expected at least {length}")
    try:
        found = checksum(path, length)
    except OSError as error:
        raise unusable(path, error) from None
    if found != expected:
        raise Damaged(path, "its checksum differs from the recorded one")


# Names


def checked_name(name: str, what: str) -> str:
    """A name from a record that may become part of a path; UserError for any other."""
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise UserError(f"{what} {str(name)[:80]!r} cannot be a file's name")
    return name


def is_inside(root: Path, path: Path) -> bool:
    """Whether a path is in the folder `root` after all links have been followed."""
    return path.resolve().is_relative_to(root.resolve())


def check_inside(root: Path, path: Path) -> Path:
    """The path, if it is in the folder `root` after all links have been followed."""
    if not is_inside(root, path):
        raise UserError(f"{path} leads out of {root}", "replace the link by what it points to")
    return path


def check_output(root: Path, folder: Path) -> Path:
    """A folder to write to; UserError if it is one of `root` and a link there leads elsewhere.

    Results folders come from other people, and most ways of writing a file follow links.
    """
    if Path(os.path.abspath(folder)).is_relative_to(os.path.abspath(root)):
        for path in (folder, *folder.rglob("*")):
            check_inside(root, path)
    return folder
