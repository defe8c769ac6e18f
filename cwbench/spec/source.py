"""Code from outside the package: its text is part of what results mean.

Of a method it is the text of its file, which the class notes when it is made, because the file may
be edited later; of an environment the text of the function or class that makes it. Classes of
notebooks and scripts are in `cwbench.experiment.notebook_source`.
"""

import ast
import hashlib
import inspect
import sys
import textwrap
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import FunctionType
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


# Environments


def named_source(function: Any) -> dict[str, str]:
    """A function's or class's name, "module:name", and a hash of its text, for records.

    UserError if the text is incomplete: other results would be taken for its own.
    """
    advice = "give a function or class, and its arguments as `kwargs`"
    if not isinstance(function, type | FunctionType):
        kind = type(function).__name__
        raise UserError(f"`env` is of type {kind}: records cannot tell what it holds", advice)
    name = f"{MAIN if of_main(function) else function.__module__}:{function.__qualname__}"
    if captured := _captured(function):
        raise UserError(f"{name} uses {captured[0]!r} of the function around it", advice)
    try:
        text = _text(function)
    except (OSError, TypeError):
        raise UserError(
            f"the source of {name} is not available",
            f"define it in {HOMES}, so that its results can be told apart",
        ) from None
    if isinstance(function, FunctionType) and not has_plain_defaults(function, text):
        defaults = repr((function.__defaults__, function.__kwdefaults__))
        if " at 0x" in defaults:
            raise UserError(f"the default arguments of {name} cannot be part of an id", advice)
        text += defaults
    return {"callable": name, "source": short_hash(text.encode())}


def _text(function: Any) -> str:
    """OSError or TypeError where there is none to read."""
    try:
        return inspect.getsource(function)
    except (OSError, TypeError):
        if isinstance(function, FunctionType):
            raise
    # Python finds the methods of a notebook's class, but not the class.
    methods, others = [], []
    for name, value in vars(function).items():
        value = getattr(value, "__func__", getattr(value, "fget", value))
        if isinstance(value, FunctionType):
            methods.append(inspect.getsource(value))
        elif not name.startswith("__") and " at 0x" not in repr(value):
            others.append(f"{name} = {value!r}")
    if not methods:
        raise OSError
    return "\n".join(methods + others)


def _captured(function: Any) -> list[str]:
    """Variables of surrounding functions that a function, or a method of a class, uses."""
    parts = [function] if isinstance(function, FunctionType) else vars(function).values()
    # What a decorator made of a function shows in the function's text.
    plain = (part for part in parts if not hasattr(part, "__wrapped__"))
    codes = [part.__code__ for part in plain if isinstance(part, FunctionType)]
    return [name for code in codes for name in code.co_freevars if name != "__class__"]  # super()


def has_plain_defaults(function: FunctionType, text: str) -> bool:
    """Whether the text holds the values of the default arguments, not only expressions."""
    if not function.__defaults__ and not function.__kwdefaults__:
        return True
    try:
        [made] = ast.parse(textwrap.dedent(text)).body
        if not isinstance(made, ast.FunctionDef):  # a lambda
            return False
        for default in (*made.args.defaults, *filter(None, made.args.kw_defaults)):
            ast.literal_eval(default)
    except (SyntaxError, ValueError):  # the line of a lambda, or an expression
        return False
    return True
