"""Environments that are Python functions or classes: what tells their results apart.

Of those in importable modules it is their own text. Those of a notebook or of the script being run
are kept with the code and values that they use there, as these are when a task is defined.
"""

import inspect
import io
import linecache
import pickle
import sys
from contextlib import suppress
from functools import cache
from types import FunctionType
from typing import Any

from cwbench.spec.errors import UserError
from cwbench.spec.notebook_source import Source, text_of
from cwbench.spec.source import MAIN, SPAWNED, of_main, short_hash

KIND = "environment"
ADVICE = "give a function or class, and its arguments as `kwargs`"


class FromMain:
    """A function or class of a notebook or script, by value: workers do not import those.

    What it uses from there may change later; this keeps what has the id of its results.
    """

    def __init__(self, function: Any, recorded: str | None = None) -> None:
        """`recorded`: the hash in a record, which may be that of the text alone: version 0.2's."""
        _check(function)
        source = Source(function.__module__, KIND)
        self.named = _record(function, source.text(function))
        if source.undefined:
            name = f"{function.__qualname__} uses {source.undefined[0]!r}"
            raise UserError(f"{name}, which is not defined yet", "make the task after it")
        with suppress(OSError, TypeError):
            if recorded == short_hash(inspect.getsource(function).encode()):
                self.named["source"] = recorded
        self.content = by_value(function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return from_value(self.content)(*args, **kwargs)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FromMain) and self.named == other.named

    def __hash__(self) -> int:
        return hash(self.named["source"])

    def __repr__(self) -> str:
        return f"<{self.named['callable']} {self.named['source']}>"


def named_source(env: Any) -> dict[str, str]:
    """A function's or class's name, "module:name", and a hash of its source, for records.

    UserError if the source is incomplete: other results would be taken for its own.
    """
    if isinstance(env, FromMain):
        return env.named
    _check(env)
    text, source = text_of(inspect.unwrap(env), KIND), Source(env.__module__, KIND)
    defaults = source.defaults(env, text) if isinstance(env, FunctionType) else ()
    return _record(env, "\n".join([text, *defaults]))


def keep_text(env: Any) -> None:
    """For workers: what `named_source` reads stays as it is now, when they have just imported it.

    Others of its file may be compared after it has been edited, which changes nothing there.
    """
    if isinstance(env, str | FromMain):
        return
    file = inspect.getsourcefile(inspect.unwrap(env)) or ""
    linecache.checkcache(file)
    if lines := linecache.getlines(file):  # without a time, they are never read again
        linecache.cache[file] = (sum(map(len, lines)), None, lines, file)


def by_value(function: Any) -> bytes:
    """The function or class with all that it uses of its notebook or script."""
    import cloudpickle

    class Pickler(cloudpickle.Pickler):  # type: ignore[misc]
        """Pickles classes without the number by which cloudpickle finds them when it loads them.

        It would give the values of this moment to what another task, or the script, has of it.
        """

        def reducer_override(self, obj: Any) -> Any:
            reduced = super().reducer_override(obj)
            if isinstance(reduced, tuple) and reduced[0].__name__.startswith("_make_skeleton_"):
                make, (*arguments, _, extra), *rest = reduced
                return make, (*arguments, None, extra), *rest
            return reduced

    if function.__module__ == SPAWNED:  # else by name
        cloudpickle.register_pickle_by_value(sys.modules[SPAWNED])
    file = io.BytesIO()
    try:
        Pickler(file).dump(function)
    except (TypeError, pickle.PicklingError) as error:
        name = f"{function.__qualname__} cannot be sent to workers: {error}"
        raise UserError(name, f"define the {KIND} in a file and import it") from None
    return file.getvalue()


@cache
def from_value(content: bytes) -> Any:
    """For workers: the bytes come through a pipe from the process that started them.

    Nothing in a results folder is unpickled.
    """
    import cloudpickle

    return cloudpickle.loads(content)


def _record(function: Any, text: str) -> dict[str, str]:
    module = MAIN if of_main(function) else function.__module__
    name = f"{module}:{function.__qualname__}"
    return {"callable": name, "source": short_hash(text.encode())}


def _check(function: Any) -> None:
    """UserError unless it is a function or class that uses no variables of others around it."""
    if not isinstance(function, type | FunctionType):
        kind = type(function).__name__
        raise UserError(f"`env` is of type {kind}: records cannot tell what it holds", ADVICE)
    parts = [function] if isinstance(function, FunctionType) else vars(function).values()
    # What a decorator made of a function shows in the function's text.
    plain = (part for part in parts if not hasattr(part, "__wrapped__"))
    codes = [part.__code__ for part in plain if isinstance(part, FunctionType)]
    if captured := [name for code in codes for name in code.co_freevars if name != "__class__"]:
        name = f"{function.__module__}:{function.__qualname__}"
        raise UserError(f"{name} uses {captured[0]!r} of the function around it", ADVICE)
