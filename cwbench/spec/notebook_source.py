"""The source of what is defined in a notebook or in the script being run.

It is collected from a class or function: its functions, what they use of the same module, values.
"""

from __future__ import annotations

import builtins
import dataclasses
import dis
import inspect
import re
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from enum import Enum
from functools import partial
from types import CodeType, FunctionType, MethodType
from typing import Any, get_origin

import numpy as np

from cwbench.spec.errors import UserError
from cwbench.spec.source import (
    HOMES,
    MAIN,
    NOTED,
    SPAWNED,
    file_source,
    has_plain_defaults,
    in_file,
    short_hash,
)

# A text in quotes, as `repr` shows it.
QUOTED = re.compile(r"""'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*\"""")

_hashed: dict[str, bytes] = {}  # code by its hash


def source_hash(cls: type) -> str:
    """Part of a segment's id, so that a changed method is trained again."""
    code = source_code(cls)
    found = short_hash(code)
    _hashed[found] = code
    return found


def hashed_code(cls: type, found: str) -> bytes:
    """The code that had this hash; what it uses may have changed since, by its own hooks."""
    return _hashed.get(found) or source_code(cls)


def source_code(cls: type) -> bytes:
    """The content of the class's file when it was imported.

    For a class of a notebook or of the script being run, the source of the class and of what it
    uses from there.
    """
    files = file_source(cls)
    if in_file(cls):
        return files
    text = "\n".join(Source(cls.__module__).collect(cls))
    own = (text.replace(SPAWNED, MAIN) if cls.__module__ == SPAWNED else text).encode()
    return own + b"\n" + files if files else own


class Source:
    """The source of a class or function and of everything of its module that it refers to."""

    def __init__(self, module: str, what: str = "method") -> None:
        self.module, self.what = module, what
        self.seen: set[int] = set()

    def collect(self, value: Any) -> Iterator[str]:
        if id(value) in self.seen:
            return
        self.seen.add(id(value))
        if isinstance(value, type):
            yield from self._class(value)
        elif isinstance(value, FunctionType):
            yield from self._function(value)

    def _class(self, cls: type) -> Iterator[str]:
        yield f"class {cls.__qualname__}({', '.join(base.__qualname__ for base in cls.__bases__)})"
        if dataclasses.is_dataclass(cls):
            yield from map(self._field, dataclasses.fields(cls))
        for base in cls.__bases__:
            if base.__module__ == self.module:
                yield from self.collect(base)
        if issubclass(cls, Enum):
            for name, member in cls.__members__.items():
                yield from self._value(f"{cls.__qualname__}.{name}", member.value)
        for name, value in vars(cls).items():
            if name not in (NOTED, "_abc_impl"):
                yield from self._attribute(cls, name, value)

    def _field(self, field: dataclasses.Field[Any]) -> str:
        """A dataclass's option; one without a default has `default_factory` or nothing."""
        made = field.default is dataclasses.MISSING
        default = self._text(field.name, field.default_factory if made else field.default)
        metadata = self._text(field.name, dict(field.metadata))
        return f"{field.name}: {field.type} = {default} {metadata}"

    def _attribute(self, cls: type, name: str, value: Any) -> Iterator[str]:
        skipped = (
            name.startswith("__")
            or name in getattr(cls, "__dataclass_fields__", {})
            or issubclass(cls, Enum)  # what else it holds, Python has made of its members
        )
        generated = dataclasses.is_dataclass(cls) and name.startswith("__")
        for part in _parts(value):
            if isinstance(part, FunctionType):
                if self._owns(part) and (not generated or name == "__post_init__"):
                    yield from self.collect(part)
            elif not skipped:
                yield from self._value(f"{cls.__qualname__}.{name}", part)

    def _owns(self, made: Any) -> bool:
        """Whether a class or function is of this module."""
        return bool(made.__module__ == self.module)

    def _function(self, function: FunctionType) -> Iterator[str]:
        inner = getattr(function, "__wrapped__", None)
        foreign = inner is not None and function.__globals__.get("__name__") != self.module
        try:
            text = inspect.getsource(function)  # of the innermost one, with its decorators' names
            decorator = inspect.getsource(function.__code__) if inner and not foreign else None
        except (OSError, TypeError):
            raise UserError(
                f"the source of {function.__qualname__} is not available",
                f"define the {self.what} in {HOMES}, so that its results can be told apart",
            ) from None
        yield text
        if decorator:
            yield decorator
        for name, value in _outer_values(function, text):
            yield from self._known(name, value) if foreign else self._value(name, value)
        yield from self.collect(inner)

    def _known(self, name: str, value: Any) -> Iterator[str]:
        """What another module's decorator holds, unless only that module knows what it is."""
        before = set(self.seen)
        try:
            yield from list(self._value(name, value))
        except UserError:
            if self._owns(value if isinstance(value, type | FunctionType) else type(value)):
                raise
            self.seen = before

    def _value(self, name: str, value: Any) -> Iterator[str]:
        if not inspect.ismodule(value):
            yield f"{name} = {self._text(name, value)}"

    def _text(self, name: str, value: Any) -> str:
        """A text that is equal for equal values in every process, and in full."""
        inner = partial(self._text, name)
        if value is dataclasses.MISSING:
            return "MISSING"
        if isinstance(value, type | FunctionType):
            own = self._owns(value)
            named = f"{'' if own else value.__module__}.{value.__qualname__}"
            return "\n".join([named, *(self.collect(value) if own else ())])
        if (function := self._behind(value)) is not None:
            return inner(function)
        try:
            if (found := _container(value, inner) or _numbers(value)) is not None:
                return found
            hidden = "".join(map(inner, self._hidden(value)))
        except RecursionError:  # it holds itself
            raise self._no_part_of_an_id(name, f"{repr(value)[:40]} holds itself") from None
        shown: Any = type(value).__repr__
        silent = self._owns(type(value)) and shown is object.__repr__
        text = "" if silent else repr(value)  # its class and attributes say all
        if hasattr(value, "state_dict"):  # a torch module, which shows its shape only
            return text + inner(dict(value.state_dict())) + hidden
        if not isinstance(value, str) and (" at 0x" in text or _cut_off(value, text)):
            raise self._no_part_of_an_id(name, text)
        return text + hidden

    def _no_part_of_an_id(self, name: str, text: str) -> UserError:
        hint = f"define the {self.what} in a file" + " and import it" * (self.what != "method")
        return UserError(f"{name} cannot be part of an id: {text[:60]}", hint)

    def _behind(self, value: Any) -> Any:
        """What is called in the end: of a bound method function and object, of a cache a function,
        of a `partial` that its text does not tell, function and arguments.

        None for other values, and for methods of other modules.
        """
        if isinstance(value, MethodType) and self._owns(value.__func__):
            return (value.__func__, value.__self__)
        if type(value) is partial and " at 0x" in repr(value):
            return (value.func, value.args, value.keywords)
        inner = getattr(value, "__wrapped__", None)
        return inner if isinstance(inner, FunctionType) and not self._owns(type(value)) else None

    def _hidden(self, value: Any) -> list[Any]:
        """Code and values that the text of an object of this module's classes may leave out."""
        torch = sys.modules.get("torch")
        if torch and isinstance(value, torch.nn.Module):
            own = [one for one in value.modules() if self._owns(type(one))]
            usual = {name for name in vars(torch.nn.Module()) if name.startswith("_")}
            return [part for one in own for part in (type(one), _without(vars(one), usual))]
        if not self._owns(type(value)):
            return []
        if isinstance(value, Enum):
            return [type(value)]
        kinds = (dict, list, tuple, set, frozenset)
        content = [kind(value) for kind in kinds if isinstance(value, kind)]
        return [type(value), *content, *_attributes(value)]


def _parts(value: Any) -> list[Any]:
    """What an attribute of a class consists of: a property of up to three functions."""
    if isinstance(value, property):
        return [one for one in (value.fget, value.fset, value.fdel) if one is not None]
    return [value.__func__ if isinstance(value, classmethod | staticmethod) else value]


def _without(values: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name not in names}


def _attributes(value: Any) -> list[Any]:
    """The values that an object holds, in its `__dict__` and in slots."""
    named = [getattr(cls, "__slots__", ()) for cls in type(value).__mro__]
    slots = [name for names in named for name in ([names] if isinstance(names, str) else names)]
    held = {name: getattr(value, name) for name in slots if hasattr(value, name)}
    return [one for one in (getattr(value, "__dict__", None), held or None) if one is not None]


def _cut_off(value: Any, text: str) -> bool:
    """Whether a value's text has dots in place of numbers: those of arrays, also inside others."""
    if hasattr(value, "__array__"):  # pandas shows texts without quotes
        return "..." in text
    return "..." in QUOTED.sub("", text) and get_origin(value) is None  # as in tuple[int, ...]


def _container(value: Any, inner: Callable[[Any], str]) -> str | None:
    """A container with each value as `inner` gives it; None for other values."""
    kind = type(value)
    if kind is dict:
        return f"{{{', '.join(f'{inner(k)}: {inner(v)}' for k, v in value.items())}}}"
    if kind is list:
        return f"[{', '.join(map(inner, value))}]"
    if kind is tuple:
        return f"({', '.join(map(inner, value))}{',' if len(value) == 1 else ''})"
    if kind in (set, frozenset):
        return f"{kind.__name__}({sorted(map(inner, value))})"
    if dataclasses.is_dataclass(value):
        fields = {one.name: getattr(value, one.name) for one in dataclasses.fields(value)}
        return inner(kind) + inner(fields)
    return None


def _numbers(value: Any) -> str | None:
    """Type, shape and a hash of all numbers of an array or tensor; None for other values."""
    torch = sys.modules.get("torch")  # there are no tensors where it is not imported
    if torch and isinstance(value, torch.Tensor):
        content = value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
    elif isinstance(value, np.ndarray) and not value.dtype.hasobject:
        content = value.tobytes()
    else:
        return None
    return f"{value.dtype} {list(value.shape)} {short_hash(content)}"


def _outer_values(function: FunctionType, text: str) -> Iterator[tuple[str, Any]]:
    """What a function's text leaves open: globals, defaults, and variables around it."""
    for name in sorted(set(_globals(function.__code__))):
        if name in function.__globals__:
            yield name, function.__globals__[name]
    plain = has_plain_defaults(function, text)
    if function.__defaults__ and not plain:
        yield f"{function.__qualname__} defaults", function.__defaults__
    if function.__kwdefaults__ and not plain:
        yield f"{function.__qualname__} keyword defaults", function.__kwdefaults__
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with suppress(ValueError):  # a variable that has no value yet
            if name != "__class__":  # for super()
                yield f"{function.__qualname__} {name}", cell.cell_contents


def undefined(made: Any) -> list[str]:
    """Globals that a function, or a class's own functions, use and that have no value yet."""
    parts = [made] if isinstance(made, FunctionType) else vars(made).values()
    return [
        name
        for part in parts
        if isinstance(part, FunctionType)
        for name in _loaded(part.__code__)
        if name not in part.__globals__ and not hasattr(builtins, name)
    ]


def _loaded(code: CodeType) -> Iterator[str]:
    """Names that are globals for certain; a class's body may have its own."""
    instructions = dis.get_instructions(code)
    yield from (one.argval for one in instructions if one.opname == "LOAD_GLOBAL")
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _loaded(constant)


def _globals(code: CodeType) -> Iterator[str]:
    """Names of the globals that a function uses, inner functions and classes included."""
    for instruction in dis.get_instructions(code):
        name = instruction.argval
        if instruction.opname == "LOAD_GLOBAL" or (
            instruction.opname == "LOAD_NAME" and not name.startswith("__")  # in a class
        ):
            yield name
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _globals(constant)
