"""Environments that are Python functions or classes: what tells their results apart.

Of those in importable modules it is their own text. Those of a notebook or of the script being run
are kept with the code and values that they use there, as these are when a task is defined.
"""

import ast
import inspect
import pickle
import re
import sys
import textwrap
from collections.abc import Iterator
from functools import cache
from types import CodeType, FunctionType
from typing import Any

from cwbench.spec.errors import UserError
from cwbench.spec.notebook_source import QUOTED, Source, undefined
from cwbench.spec.source import HOMES, MAIN, SPAWNED, has_plain_defaults, of_main, short_hash

ADVICE = "give a function or class, and its arguments as `kwargs`"


class FromMain:
    """A function or class of a notebook or script, by value: workers do not import those.

    What it uses from there may change later; this keeps what has the id of its results.
    """

    def __init__(self, function: Any, recorded: str | None = None) -> None:
        """`recorded`: the hash in a record, which may be that of the text alone: version 0.2's."""
        self.named = _named_source(function)
        if missing := undefined(function):
            name = f"{function.__qualname__} uses {missing[0]!r}"
            raise UserError(f"{name}, which is not defined yet", "make the task after it")
        if recorded == short_hash(_own_text(function).encode()):
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
    return env.named if isinstance(env, FromMain) else _named_source(env)


def by_value(function: Any) -> bytes:
    """The function or class with all that it uses of its notebook or script."""
    import cloudpickle

    if function.__module__ == SPAWNED:  # else by name
        cloudpickle.register_pickle_by_value(sys.modules[SPAWNED])
    try:
        content: bytes = cloudpickle.dumps(function)
    except (TypeError, pickle.PicklingError) as error:
        raise UserError(f"{function.__qualname__} cannot be sent to workers: {error}") from None
    return content


@cache
def from_value(content: bytes) -> Any:
    """For workers: the bytes come through a pipe from the process that started them.

    Nothing in a results folder is unpickled.
    """
    import cloudpickle

    return cloudpickle.loads(content)


def _named_source(function: Any) -> dict[str, str]:
    if not isinstance(function, type | FunctionType):
        kind = type(function).__name__
        raise UserError(f"`env` is of type {kind}: records cannot tell what it holds", ADVICE)
    name = _name(function)
    if captured := _captured(function):
        raise UserError(f"{name} uses {captured[0]!r} of the function around it", ADVICE)
    text = _own_text(function)
    if of_main(function):
        text = "\n".join([text, *_left_open(function, text)]).replace(SPAWNED, MAIN)
    return {"callable": name, "source": short_hash(text.encode())}


def _name(function: Any) -> str:
    return f"{MAIN if of_main(function) else function.__module__}:{function.__qualname__}"


def _own_text(function: Any) -> str:
    """Of the function or class alone; with the values of defaults that it does not show."""
    try:
        text = _text(function)
    except (OSError, TypeError):
        raise UserError(
            f"the source of {_name(function)} is not available",
            f"define it in {HOMES}, so that its results can be told apart",
        ) from None
    return _with_defaults(function, text) if isinstance(function, FunctionType) else text


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


def _with_defaults(function: FunctionType, text: str) -> str:
    name = _name(function)
    if not _is_whole(function, text):
        hint = "write a function with `def`, and give its arguments as `kwargs`"
        raise UserError(f"{name} shares its line with another lambda or goes on after it", hint)
    if has_plain_defaults(function, text):
        return text
    defaults = repr((function.__defaults__, function.__kwdefaults__))
    if " at 0x" in defaults:
        raise UserError(f"the default arguments of {name} cannot be part of an id", ADVICE)
    return text + defaults


def _is_whole(function: FunctionType, text: str) -> bool:
    """Whether the text is that of this function alone, to its end.

    Python finds the line of a lambda, and more lines only while its own brackets are open.
    """
    code = function.__code__
    if code.co_name != "<lambda>":
        return True
    last = max(end or 0 for _, end, _, _ in code.co_positions())
    written = re.findall(r"\blambda\b", QUOTED.sub("", text))
    inside = last < code.co_firstlineno + len(text.splitlines())
    return inside and len(written) <= _lambdas(code)


def _lambdas(code: CodeType) -> int:
    """How many lambdas a function consists of: itself, if it is one, and those inside."""
    inner = [one for one in code.co_consts if isinstance(one, CodeType)]
    return (code.co_name == "<lambda>") + sum(map(_lambdas, inner))


def _captured(function: Any) -> list[str]:
    """Variables of surrounding functions that a function, or a method of a class, uses."""
    parts = [function] if isinstance(function, FunctionType) else vars(function).values()
    # What a decorator made of a function shows in the function's text.
    plain = (part for part in parts if not hasattr(part, "__wrapped__"))
    codes = [part.__code__ for part in plain if isinstance(part, FunctionType)]
    return [name for code in codes for name in code.co_freevars if name != "__class__"]  # super()


def _left_open(made: Any, text: str) -> list[str]:
    """Code and values of a notebook or script that a function or class uses, beyond its text.

    Nothing where the text tells all.
    """
    told = set(_told(made, text))
    _, *parts = Source(made.__module__, "environment").collect(made)  # the first: text or head
    return [part for part in parts if part not in told and not _is_method(part, text)]


def _is_method(part: str, text: str) -> bool:
    """Whether a part is the text of one of a class's own functions."""
    return part.endswith("\n") and part in text


def _told(made: Any, text: str) -> Iterator[str]:
    """Values that a text has, as `Source` writes them."""
    name = made.__qualname__
    if isinstance(made, FunctionType):
        yield f"{name} defaults = {made.__defaults__!r}"
        yield f"{name} keyword defaults = {made.__kwdefaults__!r}"
        return
    try:
        [body] = [one.body for one in ast.parse(textwrap.dedent(text)).body]  # type: ignore[attr-defined]
    except SyntaxError:  # of a notebook's class: values have lines of their own
        yield from (f"{name}.{line}" for line in text.splitlines())
        return
    for statement in body:
        if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value:
            targets = getattr(statement, "targets", [getattr(statement, "target", None)])
            names = [one.id for one in targets if isinstance(one, ast.Name)]
            try:
                value = ast.literal_eval(statement.value)
            except ValueError:
                continue
            yield from (f"{name}.{one} = {value!r}" for one in names)
