"""The source of what is defined in a notebook or in the script being run.

Of a class or function it is the text of its functions, with the functions, classes and values of
the same module that they use. Values are of kinds that can be told apart in full; others are
refused, so that no change is missed.
"""

import ast
import builtins
import dataclasses
import dis
import inspect
import re
import textwrap
from abc import ABCMeta
from collections.abc import Callable, Iterator
from enum import Enum, EnumMeta
from functools import partial
from types import CellType, CodeType, FunctionType
from typing import Any

from cwbench.spec.errors import UserError
from cwbench.spec.source import HOMES, MAIN, NOTED, SPAWNED, file_source, in_file, short_hash
from cwbench.spec.value_text import imported, value_text

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
    own = Source(cls.__module__).text(cls).encode()
    return own + b"\n" + files if files else own


class Source:
    """The source of classes and functions and of everything of their module that they refer to."""

    def __init__(self, module: str, what: str = "method") -> None:
        self.module, self.what = module, what
        self.names: dict[Any, str] = {}  # of collected classes and functions, all different
        self.undefined: list[str] = []  # globals without a value

    def text(self, made: Any) -> str:
        text = "\n".join(self._collect(made))
        return text.replace(SPAWNED, MAIN) if self.module == SPAWNED else text

    def _collect(self, made: Any) -> list[str]:
        """The source of a class or function, unless it was collected before."""
        if made in self.names:
            return []
        name = str(made.__qualname__)
        same = sum(one.__qualname__ == name for one in self.names)
        self.names[made] = f"{name} {same + 1}" if same else name
        return list(self._class(made) if isinstance(made, type) else self._function(made))

    def _owns(self, made: Any) -> bool:
        """Whether this is a class or function of the module, with code that stands there."""
        if isinstance(made, FunctionType):
            generated = made.__code__.co_qualname.startswith("__create_fn__.")  # by `dataclass`
            return made.__globals__.get("__name__") == self.module and not generated
        return isinstance(made, type) and made.__module__ == self.module

    def _class(self, cls: type) -> Iterator[str]:
        inherited = [
            part for one in cls.__bases__ if self._owns(one) for part in self._collect(one)
        ]
        yield f"class {cls.__qualname__}({', '.join(map(self._base, cls.__bases__))})"
        if dataclasses.is_dataclass(cls):
            # Inherited ones belong to other classes, such as this package's, with texts of theirs.
            own = [
                one for one in dataclasses.fields(cls) if one.name in inspect.get_annotations(cls)
            ]
            yield from map(self._field, own)
        yield from inherited
        if type(cls) not in (type, ABCMeta, EnumMeta):
            yield from self._value(f"{cls.__qualname__} metaclass", type(cls))
        if issubclass(cls, Enum):
            for name, member in cls.__members__.items():
                yield from self._value(f"{cls.__qualname__}.{name}", member.value)
        for name, value in vars(cls).items():
            yield from self._attribute(cls, name, value)

    def _attribute(self, cls: type, name: str, value: Any) -> Iterator[str]:
        full, own = f"{cls.__qualname__}.{name}", self._owns(_innermost(value))
        if own and isinstance(value, FunctionType) and value.__code__.co_qualname == full:
            yield from self._collect(value)  # a text that says its name
        elif own or not _is_added(cls, name, value):
            yield from self._value(full, value)

    def _base(self, base: type) -> str:
        if base in self.names:
            return self.names[base]
        unique = base.__module__.startswith(("builtins", "cwbench."))
        return base.__qualname__ if unique else f"{base.__module__}.{base.__qualname__}"

    def _field(self, field: dataclasses.Field[Any]) -> str:
        """A dataclass's option; one without a default has `default_factory` or nothing."""
        made = field.default is dataclasses.MISSING
        value = field.default_factory if made else field.default
        default = "MISSING" if value is dataclasses.MISSING else self._text(field.name, value)
        metadata = self._text(field.name, dict(field.metadata))
        return f"{field.name}: {field.type} = {default} {metadata}"

    def _function(self, function: FunctionType) -> Iterator[str]:
        text, code, name = text_of(function, self.what), function.__code__, function.__qualname__
        yield text
        lookups = _lookups(code)
        for used in sorted({used for used, _ in lookups}):
            if used in function.__globals__:
                yield from self._value(used, function.__globals__[used])
            elif (used, True) in lookups and not hasattr(builtins, used):
                self.undefined.append(used)
        yield from self.defaults(function, text)
        for free, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            if free != "__class__" and _has_value(cell):  # that one is for super()
                yield from self._value(f"{name} {free}", cell.cell_contents)
        for attribute, value in vars(function).items():
            if not attribute.startswith("__"):
                yield from self._value(f"{name}.{attribute}", value)

    def defaults(self, function: FunctionType, text: str) -> Iterator[str]:
        """The values of default arguments, unless the function's text has them."""
        values = {"defaults": function.__defaults__, "keyword defaults": function.__kwdefaults__}
        for kind, value in values.items():
            if value and not _has_plain_defaults(text):
                yield from self._value(f"{function.__qualname__} {kind}", value)

    def _value(self, name: str, value: Any) -> Iterator[str]:
        if not inspect.ismodule(value):
            yield f"{name} = {self._text(name, value)}"

    def _text(self, name: str, value: Any) -> str:
        """A text that is equal for equal values in every process, and for no others."""
        try:
            text = self._known(value, partial(self._text, name))
        except RecursionError:  # it holds itself
            text = None
        if text is None:
            hint = f"define the {self.what} in a file" + " and import it" * (self.what != "method")
            shown = " ".join(repr(value).split())[:60]
            raise UserError(f"{name} cannot be part of an id: {shown}", hint)
        return text

    def _known(self, value: Any, inner: Callable[[Any], str]) -> str | None:
        """The text of a value of a known kind, with the values in it as `inner` gives them."""
        if self._owns(value):
            source = self._collect(value)
            return "\n".join([f".{self.names[value]}", *source])
        if getattr(value, "__module__", None) != self.module and (found := imported(value)):
            return found
        return value_text(value, inner)


def _innermost(value: Any) -> Any:
    """The function of a method or property, without what decorators made of it."""
    return inspect.unwrap(getattr(value, "__func__", getattr(value, "fget", value)))


def _is_added(cls: type, name: str, value: Any) -> bool:
    """Whether Python has added what is no function of the class's own text."""
    if issubclass(cls, Enum) or name in getattr(cls, "__dataclass_fields__", ()):
        return True
    if name.startswith("__"):
        return dataclasses.is_dataclass(cls) or not callable(value)
    return name in (NOTED, "_abc_impl")


def text_of(made: Any, what: str) -> str:
    """The text of a function or class; UserError if there is none, or not of it alone."""
    code = made.__code__ if isinstance(made, FunctionType) else None
    try:
        text = inspect.getsource(code or made)
    except (OSError, TypeError):
        hint = f"define the {what} in {HOMES}, so that its results can be told apart"
        raise UserError(f"the source of {made.__qualname__} is not available", hint) from None
    if code and code.co_name == "<lambda>":
        # Python finds its line, and more lines only while its own brackets are open.
        last = max(end or 0 for _, end, _, _ in code.co_positions())
        inside = last < code.co_firstlineno + len(text.splitlines())
        if not inside or len(re.findall(r"\blambda\b", text)) > 1:
            name = f"{made.__qualname__} shares its lines with another lambda or goes on after them"
            raise UserError(name, "write a function with `def`")
    return text


def _has_plain_defaults(text: str) -> bool:
    """Whether a function's text holds the values of its defaults, not only expressions."""
    try:
        nodes = ast.walk(ast.parse(textwrap.dedent(text)))
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
        arguments = next(node.args for node in nodes if isinstance(node, kinds))
        for default in (*arguments.defaults, *filter(None, arguments.kw_defaults)):
            ast.literal_eval(default)
    except (SyntaxError, ValueError, StopIteration):  # part of an expression; or a name
        return False
    return True


def _has_value(cell: CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:  # nothing was assigned yet
        return False
    return True


def _lookups(code: CodeType) -> set[tuple[str, bool]]:
    """Names that a function, and what is inside it, uses, and whether as globals for certain."""
    uses = [(one.argval, one.opname) for one in dis.get_instructions(code)]
    found = {(name, True) for name, kind in uses if kind == "LOAD_GLOBAL"}
    # In a class, which may have a value of this name; it takes its module from `__name__`.
    found |= {(name, False) for name, kind in uses if kind == "LOAD_NAME" and name[:2] != "__"}
    inner = (_lookups(one) for one in code.co_consts if isinstance(one, CodeType))
    return found.union(*inner)
