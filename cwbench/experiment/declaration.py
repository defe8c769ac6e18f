"""What the declaration of a method's class shows to be wrong, before anything is trained."""

from __future__ import annotations

import dataclasses
import difflib
import inspect
import json
from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args, get_origin

from cwbench.experiment.execution import Execution, Launching
from cwbench.spec.config import MethodConfig, option_groups
from cwbench.spec.errors import UserError, located
from cwbench.spec.options import KINDS, Field, checked, field_names, field_type, flag_name

if TYPE_CHECKING:
    from cwbench.learner.method import Method

    MethodClass: TypeAlias = type[Method[Any]]

# Functions of `Method` that are only called: similar names in a method are no mistake.
CALLED = ("assign", "begin_task", "end_task", "per_run", "rows_per_task", "segments_of_run")
STATE = ("state", "load_state")
# Options of `cwbench run` and arguments of `cwbench.plan`, groups of options aside; in the last
# line, what click calls some of them.
TAKEN = """
    help method seq sequence seeds protocol unshared tuned results quiet live dry-run yes json
    names as-json
""".split()


def check_outside(name: str, method: MethodClass) -> None:
    """UserError if a class from outside the package cannot be what its author means."""
    from cwbench.methods import ALIASES, METHODS

    if name in {*METHODS, *ALIASES}:
        raise UserError(f"class {name} has the name of a built-in method", "choose another name")
    check_hooks(method)
    check_options(method)


def check_hooks(method: MethodClass) -> None:
    """UserError if a hook or a setting is misspelt: it would be ignored.

    Names that the class itself uses are fine.
    """
    from cwbench.learner.method import Method

    functions = [name for name, _ in inspect.getmembers(Method, inspect.isfunction)]
    hooks = [one for one in functions if not one.startswith("_") and one not in (*CALLED, *STATE)]
    for name in sorted(set(dir(method)) - set(dir(Method)) - set(_used(method))):
        cutoff = 0.0 if name.startswith("on_task_") else 0.85
        match = difflib.get_close_matches(name, hooks, n=1, cutoff=cutoff)
        match = match or _close_settings(method, name)
        if match and not name.startswith("_"):
            raise UserError(
                f"nothing uses {name} of {method.__name__}",
                f"did you mean {match[0]}? Names of your own may begin with an underscore",
            )


def _close_settings(method: MethodClass, name: str) -> list[str]:
    """Settings such as `interval`, left unset, that this name may be a misspelling of.

    Functions and properties are an author's own.
    """
    from cwbench.learner.method import Method

    if hasattr(inspect.getattr_static(method, name), "__get__"):
        return []
    settings = [one for one in inspect.get_annotations(Method) if hasattr(Method, one)]
    found = difflib.get_close_matches(name, settings, n=1, cutoff=0.9)
    return [one for one in found if getattr(method, one) is getattr(Method, one)]


def _used(method: MethodClass) -> Iterator[str]:
    """Names that functions of a class and its bases use, other than that of the function itself."""
    for own, value in (item for cls in method.__mro__ for item in vars(cls).items()):
        for part in (value, *(getattr(value, name, None) for name in ("__func__", "fget", "fset"))):
            function = inspect.unwrap(part) if callable(part) else part
            if isinstance(function, FunctionType):
                yield from (name for name in _names(function.__code__) if name != own)


def _names(code: CodeType) -> Iterator[str]:
    """Names of globals and attributes in a function, inner functions included."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def check_options(method: MethodClass) -> None:
    """UserError unless options have help, unique names, and defaults that they allow.

    They must also survive being written to a record.
    """
    config = method.config_class
    for declared in _declared_configs(method):
        if not issubclass(config, declared):
            raise UserError(
                f"{method.__name__} does not use the options of {declared.__name__}",
                f"set config_class = {declared.__name__}",
            )
    for field in dataclasses.fields(config):
        if not field.metadata.get("help"):
            raise UserError(f"option {field.name} has no help", "declare it with option(...)")
        _check_type(method, field)
        if field.default is not None:
            with located(f"the default of option {field.name} of {method.__name__}"):
                checked(config, field.name, field.default)
    _check_names(method)
    shared = field_names(*option_groups().values())
    if unknown := set(method.preset) - field_names(config) - shared:
        raise UserError(f"preset names {min(unknown)}, which is not an option")
    if config.from_record(json.loads(json.dumps(config().record()))) != config():
        raise UserError("options change when they are written to a record and read back")


def _check_names(method: MethodClass) -> None:
    """UserError for an option that shares its name with another."""
    taken = {*TAKEN, *map(flag_name, field_names(Execution, Launching, *option_groups().values()))}
    for field in dataclasses.fields(method.config_class):
        flag = flag_name(field.name)
        if flag in taken:
            raise UserError(
                f"option {field.name} of {method.__name__} has the name of another option",
                "choose another name",
            )
        taken.add(flag)


def _check_type(method: MethodClass, field: Field) -> None:
    """UserError for a type that no command can parse or no record can hold."""
    hint = field_type(method.config_class, field)
    choices = get_args(hint) if get_origin(hint) is Literal else ()
    if hint not in KINDS and not (
        choices and all(isinstance(one, str | int | float) for one in choices)
    ):
        kind = getattr(hint, "__name__", hint)
        raise UserError(
            f"option {field.name} of {method.__name__} is of type {kind}",
            "use bool, int, float, str, or Literal with texts or numbers",
        )


def _declared_configs(method: MethodClass) -> Iterator[type[MethodConfig]]:
    """`MineConfig` of `class Mine(Method[MineConfig])`, down to the base that has set its own."""
    for cls in method.__mro__:
        for base in vars(cls).get("__orig_bases__", ()):
            named = (x for x in get_args(base) if isinstance(x, type))
            yield from (x for x in named if issubclass(x, MethodConfig))
        if "config_class" in vars(cls):
            return
