"""Code from outside the package: its text is part of what results mean.

Of a method it is the text of its file, which the class notes when it is made, because the file may
be edited later; of an environment the text of the function or class that makes it. Classes of
notebooks and scripts are in `cwbench.spec.notebook_source`.
"""

import hashlib
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from cwbench.spec.errors import UserError

NOTED = "_source_when_made"
# Where Python finds the text of what is defined.
HOMES = "a file or a notebook's cell without %%time or another cell magic"


# In processes that `multiprocessing` spawns, the script being run has the second name.
MAIN, SPAWNED = "__main__", "__mp_main__"


def of_main(made: Any) -> bool:
    """Whether a class or function is of a notebook or of the script being run."""
    return getattr(made, "__module__", None) in (MAIN, SPAWNED)


def short_hash(text: bytes) -> str:
    """Part of a segment's id, so that what was changed is trained again."""
    return hashlib.sha256(text).hexdigest()[:12]


# Methods


def note_source(cls: type) -> None:
    """Keep the text of the file that defines a class, unless it is one of this package."""
    file = getattr(sys.modules.get(cls.__module__), "__file__", None)
    if file and not cls.__module__.startswith("cwbench."):
        with suppress(OSError):
            path = Path(file).resolve()
            setattr(cls, NOTED, (path, path.read_bytes()))


def in_file(cls: type) -> bool:
    """Whether a class is of an imported file, rather than of a notebook or the script being run."""
    return NOTED in vars(cls) and not of_main(cls)


def is_replaced(cls: type) -> bool:
    """Whether the file of a class has been reloaded: its functions use the new values there."""
    module = sys.modules.get(cls.__module__)
    return in_file(cls) and getattr(module, cls.__qualname__, cls) is not cls


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
    for path in changed_files(cls):
        hint = "reload the module or restart Python"
        raise UserError(f"{path} has changed since {cls.__name__} was imported", hint)


def changed_files(cls: type) -> Iterator[Path]:
    """Files of a class and its bases that are not as they were when it was made."""
    for path, text in (vars(base)[NOTED] for base in cls.__mro__ if NOTED in vars(base)):
        with suppress(OSError):
            if path.read_bytes() != text:
                yield path
