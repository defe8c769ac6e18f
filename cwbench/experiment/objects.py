"""Methods and sequences handed over as Python objects instead of names."""

from __future__ import annotations

import dataclasses
import dis
import hashlib
import inspect
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

from cwbench import sequences
from cwbench.spec.errors import UserError
from cwbench.spec.tasks import Task

if TYPE_CHECKING:
    from cwbench.learner.method import Method
    from cwbench.methods import Entry

SequenceLike = str | sequences.Sequence | Sequence[str | Task]


def find_method(method: str | type[Method[Any]]) -> tuple[str, str, Entry]:
    """What a method is called, the name it is recorded under, and its entry."""
    from cwbench.methods import Entry, known, load

    if isinstance(method, str):
        return (method, *load(method))
    from cwbench.learner.method import Method

    if not (isinstance(method, type) and issubclass(method, Method)):
        raise UserError(
            f"{method!r} is not a method", "give a name or a subclass of cwbench.Method"
        )
    for name, entry in known().items():
        if entry.method is method and entry.base is None:
            return name, name, entry
    return method.__name__, method.__name__, Entry(method, source=source_hash(method))


def find_sequences(wanted: SequenceLike) -> list[sequences.Sequence]:
    """A name or pattern as on the command line, a sequence, or its tasks, by name or as objects."""
    if isinstance(wanted, str):
        return sequences.expand(wanted)
    if isinstance(wanted, sequences.Sequence):
        return [_checked(wanted)]
    if not isinstance(wanted, Iterable):
        raise UserError(f"{wanted!r} is not a sequence", "give a name, or a list of tasks")
    definitions = [task for task in wanted if isinstance(task, Task)]
    tasks = [task.name if isinstance(task, Task) else task for task in wanted]
    if not tasks or not all(isinstance(task, str) for task in tasks):
        raise UserError(f"{wanted!r} is not a sequence", "give a name, or a list of tasks")
    if not definitions:
        return [_checked(sequences.Sequence("-".join(tasks), tuple(tasks)))]
    if len(definitions) < len(tasks):
        raise UserError("a sequence has tasks by name and tasks as objects", "use only one kind")
    return [_checked(_defined(tasks, definitions))]


def _defined(tasks: Sequence[str], definitions: Sequence[Task]) -> sequences.Sequence:
    """A sequence of tasks with environments of their own."""
    distinct = {task.name: task for task in definitions}
    for task in definitions:
        if distinct[task.name] != task:
            raise UserError(f"two tasks are called {task.name!r}", "give each a name of its own")
        if isinstance(task.env, FunctionType) and task.env.__module__ == "__main__":
            list(Source("__main__").collect(task.env))  # UserError if there is no source to hash
    made = tuple(distinct.values())
    return sequences.Sequence("-".join(tasks), tuple(tasks), "gymnasium", made)


def _checked(sequence: sequences.Sequence) -> sequences.Sequence:
    """The sequence with the suite of its tasks, if there are such tasks."""
    if sequences.NAMED.get(sequence.name, sequence) != sequence:
        raise UserError(f"{sequence.name!r} is the name of a published sequence", "use another")
    if sequence.definitions:
        return sequence
    return sequences.of_tasks(sequence.name, sequence.tasks)


def source_hash(cls: type) -> str:
    """Part of a segment's id, so that a changed method is trained again."""
    return hashlib.sha256(source_code(cls)).hexdigest()[:12]


def source_code(cls: type) -> bytes:
    """The content of the class's file.

    For a class of a notebook or of the script being run, the source of the class and of what it
    uses from there.
    """
    file = getattr(sys.modules.get(cls.__module__), "__file__", None)
    if file and cls.__module__ != "__main__":
        return Path(file).read_bytes()
    return "\n".join(Source(cls.__module__).collect(cls)).encode()


class Source:
    """The source of a class and of everything of the same module that it refers to."""

    def __init__(self, module: str) -> None:
        self.module = module
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
            yield from map(_field, dataclasses.fields(cls))
        for base in cls.__bases__:
            if base.__module__ == self.module:
                yield from self.collect(base)
        for name, value in vars(cls).items():
            yield from self._attribute(cls, name, value)

    def _attribute(self, cls: type, name: str, value: Any) -> Iterator[str]:
        value = getattr(value, "__func__", getattr(value, "fget", value))
        if isinstance(value, FunctionType):
            generated = dataclasses.is_dataclass(cls) and name.startswith("__")
            if value.__module__ == self.module and (not generated or name == "__post_init__"):
                yield from self.collect(value)
        elif not name.startswith("__") and name not in getattr(cls, "__dataclass_fields__", {}):
            yield from self._value(f"{cls.__qualname__}.{name}", value)

    def _function(self, function: FunctionType) -> Iterator[str]:
        try:
            yield inspect.getsource(function)
        except (OSError, TypeError):
            raise UserError(
                f"the source of {function.__qualname__} is not available",
                "define the method in a file or a notebook, so that its results can be told apart",
            ) from None
        for name in sorted(set(_globals(function.__code__))):
            if name in function.__globals__:
                yield from self._value(name, function.__globals__[name])

    def _value(self, name: str, value: Any) -> Iterator[str]:
        """A class attribute or a global variable that a function uses."""
        if isinstance(value, type | FunctionType):
            own = value.__module__ == self.module
            yield f"{name} = {'' if own else value.__module__}.{value.__qualname__}"
            yield from self.collect(value) if own else ()
        elif not inspect.ismodule(value):
            text = repr(value)
            if " at 0x" in text:
                raise UserError(
                    f"{name} cannot be part of an id: {text[:60]}", "define the method in a file"
                )
            yield f"{name} = {text}"


def _field(field: dataclasses.Field[Any]) -> str:
    return f"{field.name}: {field.type} = {field.default!r} {dict(field.metadata)!r}"


def _globals(code: CodeType) -> Iterator[str]:
    """Names of the globals that a function uses, inner functions included."""
    for instruction in dis.get_instructions(code):
        if instruction.opname == "LOAD_GLOBAL":
            yield instruction.argval
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _globals(constant)
