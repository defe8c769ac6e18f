"""Files that users name: reading their text, and showing where something is."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cwbench.spec.errors import UserError, unknown

LARGEST_BYTES = 16 << 20


def read_text(path: Path) -> str:
    """The text of a regular file; UserError for a folder, a pipe, or something huge or binary."""
    if not path.exists():
        raise UserError("no such file")
    if not path.is_file():
        raise UserError("not a file")
    if path.stat().st_size > LARGEST_BYTES:
        raise UserError(f"larger than {LARGEST_BYTES >> 20} MiB")
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise UserError("not a text file in UTF-8") from None


def short_path(path: Path) -> Path:
    """A path as users write it: below the working directory it is relative."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def checked_table(value: Any, keys: Sequence[str]) -> dict[str, Any]:
    """A table of a TOML file; UserError if it has other keys than these."""
    if not isinstance(value, dict):
        raise UserError(f"expected a table, found {value!r}")
    if extra := [key for key in value if key not in keys]:
        raise unknown("key", extra[0], keys, f"allowed: {', '.join(keys)}")
    return value
