"""What went wrong, in a form that can be stored and shown."""

import errno
import importlib
import os
import sys
import sysconfig
import traceback
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FunctionType
from typing import Any

from cwbench.spec.errors import UserError

BY_USER = f"{UserError.__module__}.{UserError.__qualname__}: "  # before a message in a traceback
# Their lines say nothing about an error in code that they import or call.
FOLDERS = (Path(__file__).parents[1], Path(importlib.__file__).parent)
CALLERS = (*(f"{folder}{os.sep}" for folder in FOLDERS), "<frozen ")
INSTALLED = tuple(sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib"))
DISK_ERRORS = {errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS}


def describe(error: BaseException, classes: Iterable[type] = ()) -> dict[str, Any]:
    """Type, message and traceback of an error, and the line where it happened.

    That is a line of one of these classes' files, if the error passed through one.
    """
    frames = traceback.extract_tb(error.__traceback__)
    files = {file for cls in classes for file in files_of(cls)}
    theirs = [frame for frame in frames if frame.filename in files]
    where = [
        {"file": frame.filename, "line": frame.lineno, "function": frame.name}
        for frame in (theirs or frames)[-1:]
    ]
    text = "".join(traceback.format_exception(error))
    by_user = isinstance(error, UserError)  # or of a class derived from it
    kind, message = (UserError if by_user else type(error)).__name__, last_line(error)
    if message.startswith(BY_USER):  # in another process, whose traceback the error holds
        kind, message = UserError.__name__, message.removeprefix(BY_USER)
    return {
        "type": kind,
        "message": message,
        **(where[0] if where else {}),
        "theirs": bool(theirs),
        "traceback": text,
    }


def in_called_code(error: BaseException, *callers: str) -> dict[str, Any]:
    """An error in code that was imported or called, for `where_it_failed`.

    It names the innermost line outside of these files, of this package and of Python's import; the
    user's own, if there is one, rather than that of an installed package. Of an error that one of
    these files has passed on it is the cause; one that the code itself raised from another says
    what to do. A file that cannot be parsed is named with its line.
    """
    callers = (*CALLERS, *callers)
    while error.__cause__ is not None and not isinstance(error, UserError):
        raised = traceback.extract_tb(error.__traceback__)[-1:]
        if any(not frame.filename.startswith(callers) for frame in raised):
            break
        error = error.__cause__
    record = describe(error)
    found = {"type": record["type"], "message": " ".join(str(error).split()) or record["type"]}
    if isinstance(error, SyntaxError) and os.path.isfile(error.filename or ""):
        return found | {"file": error.filename, "line": error.lineno, "message": error.msg}
    frames = traceback.extract_tb(error.__traceback__)
    called = [frame for frame in frames if not frame.filename.startswith(callers)]
    own = [frame for frame in called if not frame.filename.startswith(INSTALLED)]
    for frame in (own or called)[-1:]:
        found |= {"file": frame.filename, "line": frame.lineno, "function": frame.name}
    return found


def of_the_disk(error: BaseException) -> bool:
    """Whether a disk is full or broken: nothing is wrong with any code."""
    return isinstance(error, OSError) and error.errno in DISK_ERRORS


def last_line(error: BaseException) -> str:
    """What an error says, in one line; the last of several, as after a traceback."""
    if isinstance(error, OSError) and (error.filename or of_the_disk(error)):
        where = f"{error.filename}: " if error.filename else ""
        advice = "; once it can be written, the same command continues"
        return f"{where}{error.strerror}{advice * of_the_disk(error)}"
    lines = str(error).strip().splitlines() or [type(error).__name__]
    if isinstance(error, TypeError):  # torch goes on with every way to call the function
        return lines[0].removesuffix(", but expected one of:")
    return lines[-1]


def brief(status: Mapping[str, Any]) -> str:
    """`KeyError: 'weights'` of a failed segment's status: a message alone may be one word."""
    kind = (status.get("error") or {}).get("type", "")
    message = str(status.get("message", ""))
    return message if kind in ("", UserError.__name__) else f"{kind}: {message}"


def where_it_failed(record: dict[str, Any]) -> str:
    """`file.py line 12, in actor_penalty: ValueError: too small`, as far as it is known."""
    if record["type"] == UserError.__name__:  # the message says what to do
        return str(record["message"])
    what = f"{record['type']}: {record['message']}"
    if "file" not in record:
        return what
    where = f", in {record['function']}" if "function" in record else ""
    return f"{record['file']} line {record['line']}{where}: {what}"


def files_of(cls: type) -> set[str]:
    """Files of a class and of its bases that are not part of this package."""
    outside = [base for base in cls.__mro__ if not base.__module__.startswith("cwbench.")]
    functions = [f for base in outside for f in vars(base).values() if isinstance(f, FunctionType)]
    modules = [getattr(sys.modules.get(base.__module__), "__file__", None) for base in outside]
    return {function.__code__.co_filename for function in functions} | {*filter(None, modules)}


@contextmanager
def blamed_on(classes: Iterable[type]) -> Iterator[None]:
    """Turn an error in the code of a user's class into one line that says where it is."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        classes = list(classes)
        record = describe(error, classes)
        if record["theirs"]:
            raise UserError(f"method file {where_it_failed(record)}") from error
        if isinstance(error, TypeError) and _calls_wrongly(str(error), classes):
            raise UserError(f"{error}", "see the hook's arguments in docs/methods.md") from error
        raise


def _calls_wrongly(message: str, classes: Iterable[type]) -> bool:
    """Whether a method of a user's class was called with arguments that it does not take."""
    names = [cls.__qualname__ for cls in classes if files_of(cls)]
    return any(message.startswith(f"{name}.") for name in names)
