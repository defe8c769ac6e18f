"""The files of methods from outside the package: their text is part of what results mean.

A class notes the text of its file when it is made, because the file may be edited later.
"""

import hashlib
import sys
from contextlib import suppress
from pathlib import Path

from cwbench.spec.errors import UserError

NOTED = "_source_when_made"


def note_source(cls: type) -> None:
    """Keep the text of the file that defines a class, unless it is one of this package."""
    file = getattr(sys.modules.get(cls.__module__), "__file__", None)
    if file and not cls.__module__.startswith("cwbench."):
        with suppress(OSError):
            path = Path(file).resolve()
            setattr(cls, NOTED, (path, path.read_bytes()))


def in_file(cls: type) -> bool:
    """Whether a class is of an imported file, rather than of a notebook or the script being run."""
    return NOTED in vars(cls) and cls.__module__ != "__main__"


def file_source(cls: type) -> bytes:
    """The text, as it was imported, of a class's file and of those of methods it derives from.

    Files of this package are left out, as are notebooks and the script being run.
    """
    return b"\n".join(dict(vars(base)[NOTED] for base in cls.__mro__ if in_file(base)).values())


def recorded_alone(cls: type, text: bytes) -> bool:
    """Whether results of a class may have recorded this file only, not those of its bases.

    Version 0.2 did. A file that results keep holds the bases too, but imports them from where they
    are: there they must be the same.
    """
    bases = [base for base in cls.__mro__ if in_file(base) and base.__name__ != cls.__name__]
    return all(
        vars(base)[NOTED][1] in text or f"class {base.__name__}(".encode() not in text
        for base in bases
    )


def check_unchanged(cls: type) -> None:
    """UserError if a file has changed since the class was made: old code would get a new id."""
    for path, text in (vars(base)[NOTED] for base in cls.__mro__ if NOTED in vars(base)):
        with suppress(OSError):
            if path.read_bytes() != text:
                raise UserError(
                    f"{path} has changed since {cls.__name__} was imported",
                    "reload the module or restart Python",
                )


def short_hash(text: bytes) -> str:
    """Part of a segment's id, so that a changed method is trained again."""
    return hashlib.sha256(text).hexdigest()[:12]
