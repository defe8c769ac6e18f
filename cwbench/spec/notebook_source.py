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
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

from cwbench.spec.errors import UserError
from cwbench.spec.source import HOMES, MAIN, NOTED, SPAWNED, file_source, in_file, short_hash
from cwbench.spec.value_text import imported, is_named_tuple, kind_of, value_text

# Attributes that Python and torch add to classes; what they hold is told by others or not used.
ADDED = {
    *"""
    __module__ __doc__ __dict__ __weakref__ __hash__ __slots__ __slotnames__ __annotations__
    __annotate_func__ __annotations_cache__ __orig_bases__ __parameters__ __type_params__
    __abstractmethods__ _abc_impl __firstlineno__ __static_attributes__ __match_args__
    __dataclass_fields__ __dataclass_params__ __replace__ _backward_cls
    """.split(),
    NOTED,
}
ADDED_TO_NAMED_TUPLES = {*vars(NamedTuple("Empty", []))} - {"_fields", "_field_defaults"}
# What `dataclass` and `field` may be told, and the usual; the rest changes no numbers.
USUAL_DATACLASS = {"init": True, "eq": True, "order": False, "unsafe_hash": False}
USUAL_FIELD = {"init": True, "compare": True, "hash": None, "kw_only": False}
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
        if type(made) is FunctionType:
            return made.__globals__.get("__name__") == self.module and not _is_generated(made)
        return issubclass(type(made), type) and made.__module__ == self.module

    def _class(self, cls: type) -> Iterator[str]:
        inherited = [
            part for one in cls.__bases__ if self._owns(one) for part in self._collect(one)
        ]
        yield f"class {cls.__qualname__}({', '.join(map(self._base, cls.__bases__))})"
        if told := _told(vars(cls).get("__dataclass_params__"), USUAL_DATACLASS):
            yield told
        yield from map(self._field, _own_fields(cls))
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
        if own and type(value) is FunctionType and value.__code__.co_qualname == full:
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
        told = _told(field, USUAL_FIELD)
        return f"{field.name}: {field.type} = {default} {metadata}{told}"

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
        if not issubclass(type(value), ModuleType):
            yield f"{name} = {self._text(name, value)}"

    def _text(self, name: str, value: Any) -> str:
        """A text that is equal for equal values in every process, and for no others."""
        try:
            text = self._known(value, partial(self._text, name))
        except UserError:
            raise
        except Exception:  # it holds itself, or its attributes raise
            text = None
        if text is None:
            hint = f"define the {self.what} in a file" + " and import it" * (self.what != "method")
            hint = f"create it in a function that uses it, or {hint}"
            raise UserError(f"{name} cannot be part of an id: {_shown(value)}", hint)
        return text

    def _known(self, value: Any, inner: Callable[[Any], str]) -> str | None:
        """The text of a value of a known kind, with the values in it as `inner` gives them."""
        if self._owns(value):
            source = self._collect(value)
            return "\n".join([f".{self.names[value]}", *source])
        if getattr(value, "__module__", None) != self.module and (found := imported(value)):
            return found
        return value_text(value, inner)


def _shown(value: Any) -> str:
    try:
        return " ".join(repr(value).split())[:60]
    except Exception:  # its own `__repr__` raises
        return f"an object of type {kind_of(value)}"


def _innermost(value: Any) -> Any:
    """The function of a method or property, without what decorators made of it."""
    if type(value) in (staticmethod, classmethod):
        value = value.__func__
    elif type(value) is property:
        value = value.fget
    return inspect.unwrap(value) if type(value) is FunctionType else value


def _is_generated(made: Any) -> bool:
    """Whether `dataclass` has made a function."""
    return type(made) is FunctionType and made.__code__.co_qualname.startswith("__create_fn__.")


def _told(made: Any, usual: dict[str, Any]) -> str:
    """What `dataclass` was told about a class or field, unless it is the usual."""
    values = ((name, getattr(made, name, default)) for name, default in usual.items())
    return "".join(f" {name}={value}" for name, value in values if value != usual[name])


def _own_fields(cls: Any) -> list[dataclasses.Field[Any]]:
    """The options of a dataclass, without those of its bases, such as this package's."""
    if "__dataclass_params__" not in vars(cls):
        return []
    return [one for one in dataclasses.fields(cls) if one.name in inspect.get_annotations(cls)]


def _is_added(cls: Any, name: str, value: Any) -> bool:
    """Whether an attribute is not of the class's own text, or was told as an option or member."""
    if name in ADDED or _is_generated(_innermost(value)):
        return True
    if issubclass(cls, Enum):
        return name in cls.__members__ or name[0] == name[-1] == "_"
    if is_named_tuple(cls):
        return name in ADDED_TO_NAMED_TUPLES or name in cls._fields
    return name in [field.name for field in _own_fields(cls)]


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
