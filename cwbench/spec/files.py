"""Reading text files that users wrote; anything else under their names is an error."""

from pathlib import Path

from cwbench.spec.errors import UserError

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
