"""The version of this package, where every layer may read it."""

from pathlib import Path

__version__ = "0.2.0"


def built_commit() -> str:
    """The commit a wheel was built at, which is in its file `COMMIT`; empty elsewhere."""
    file = Path(__file__).resolve().with_name("COMMIT")
    return file.read_text(encoding="utf-8").strip() if file.exists() else ""
