"""Texts of values of known kinds: equal for equal values in every process, and for no others."""

import dataclasses
import sys
from collections.abc import Callable
from contextlib import suppress
from enum import Enum
from functools import reduce
from pathlib import Path
from types import EllipsisType, FunctionType, ModuleType, NoneType
from typing import Any, get_args, get_origin

import numpy as np

from cwbench.spec.source import short_hash

# Kinds of values whose `repr` tells all; numbers and types of numpy and torch are others.
SHOWN = (NoneType, bool, int, float, complex, str, bytes, range, EllipsisType, type(Path()))
# Kinds that consist of other values, by name: not all of their modules need be imported.
PARTS: dict[str, Callable[[Any], tuple[Any, ...]]] = {
    "builtins.slice": lambda value: (value.start, value.stop, value.step),
    "builtins.method": lambda value: (value.__func__, value.__self__),
    "builtins.staticmethod": lambda value: (value.__func__,),
    "builtins.classmethod": lambda value: (value.__func__,),
    "builtins.property": lambda value: (value.fget, value.fset, value.fdel),
    "functools.partial": lambda value: (value.func, value.args, value.keywords),
    "functools.cached_property": lambda value: (value.func,),
    "functools._lru_cache_wrapper": lambda value: (value.__wrapped__, value.cache_parameters()),
    "torch.autograd.grad_mode.no_grad": lambda value: (),
    "torch.autograd.grad_mode.enable_grad": lambda value: (),
    "torch.autograd.grad_mode.set_grad_enabled": lambda value: (value.mode,),
    "torch.autograd.grad_mode.inference_mode": lambda value: (value.mode,),
    "gymnasium.spaces.box.Box": lambda value: (value.low, value.high, value.dtype),
    "types.SimpleNamespace": lambda value: (vars(value),),
    "argparse.Namespace": lambda value: (vars(value),),
    "re.Pattern": lambda value: (value.pattern, value.flags),
    "logging.Logger": lambda value: (value.name,),
    "logging.RootLogger": lambda value: (),
    "typing.TypeVar": lambda value: (value.__name__, value.__bound__, value.__constraints__),
    "builtins.member_descriptor": lambda value: (value.__name__,),  # one of `__slots__`
}
# Code of the functions that `contextmanager`, `Protocol` and decorators of torch make.
WRAPPERS = (
    "contextlib.contextmanager.<locals>.helper",
    "typing.Protocol.__init_subclass__.<locals>._proto_hook",
    "torch.utils._contextlib.context_decorator.<locals>.decorate_context",
    # In torch 2.15 this code has the name of its decorator.
    "torch.utils._contextlib.no_grad",
    "torch.utils._contextlib.enable_grad",
    "torch.utils._contextlib.set_grad_enabled",
    "torch.utils._contextlib.inference_mode",
)


def value_text(value: Any, inner: Callable[[Any], str]) -> str | None:
    """The text of a value, with the values in it as `inner` gives them; None for other kinds.

    Functions and classes are not among these kinds.
    """
    if (parts := _parts(value)) is not None:
        return f"{type(value).__name__}({', '.join(map(inner, parts))})"
    return _plain(value) or _container(value, inner) or _array(value) or _object(value, inner)


def kind_of(value: Any) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"


def is_named_tuple(cls: type) -> bool:
    return issubclass(cls, tuple) and "_field_defaults" in vars(cls)


def imported(value: Any) -> str | None:
    """The name under which a module has a class or function; None for other values."""
    module = getattr(value, "__module__", None)
    for name in (getattr(value, "__qualname__", None), getattr(value, "__name__", None)):
        if isinstance(module, str) and isinstance(name, str):
            start: Any = sys.modules.get(module)
            if reduce(lambda at, part: getattr(at, part, None), name.split("."), start) is value:
                return f"{module}.{name}"
    return None


def _parts(value: Any) -> tuple[Any, ...] | None:
    """The values that a value consists of; None if it is not of such a kind."""
    if type(value) is FunctionType:
        made_by = f"{value.__globals__.get('__name__')}.{value.__code__.co_qualname}"
        cells = value.__closure__ or ()
        return tuple(cell.cell_contents for cell in cells) if made_by in WRAPPERS else None
    if get_origin(value) is not None:  # a type with parameters, such as `list[int]`
        return get_origin(value), get_args(value)
    return PARTS[kind_of(value)](value) if kind_of(value) in PARTS else None


def _plain(value: Any) -> str | None:
    kind = kind_of(value)
    numpys = isinstance(value, np.number | np.bool_ | np.dtype) and kind.startswith("numpy.")
    if type(value) in SHOWN or numpys or kind in ("torch.dtype", "torch.device"):
        return repr(value)
    if value is NoneType:  # which no module has under its name
        return "NoneType"
    return value.__name__ if issubclass(type(value), ModuleType) else None


def _container(value: Any, inner: Callable[[Any], str]) -> str | None:
    kind = type(value)
    if kind is dict:
        return f"{{{', '.join(f'{inner(k)}: {inner(v)}' for k, v in value.items())}}}"
    if kind is list:
        return f"[{', '.join(map(inner, value))}]"
    if kind is tuple:
        return f"({', '.join(map(inner, value))}{',' if len(value) == 1 else ''})"
    if kind in (set, frozenset):  # in an order that is the same in every process
        return f"{kind.__name__}({sorted(map(inner, sorted(value, key=repr)))})"
    return None


def _array(value: Any) -> str | None:
    """Type, shape and a hash of all numbers of an array or tensor."""
    if type(value) is np.ndarray and not value.dtype.hasobject:
        return f"{value.dtype} {list(value.shape)} {short_hash(value.tobytes())}"
    if kind_of(value) not in ("torch.Tensor", "torch.nn.parameter.Parameter") or value.is_quantized:
        return None
    with suppress(RuntimeError):  # a sparse one, or one without numbers
        data = value.detach().cpu().resolve_conj().resolve_neg().contiguous().reshape(-1)
        content = data.view(sys.modules["torch"].uint8).numpy().tobytes()
        grad = " requires_grad" * value.requires_grad
        return f"{value.dtype} {list(value.shape)} {short_hash(content)}{grad}"
    return None


def _object(value: Any, inner: Callable[[Any], str]) -> str | None:
    """A member of an enumeration, or a dataclass's instance that holds its fields only."""
    kind = type(value)
    if issubclass(kind, Enum):
        return f"{value.name} of {inner(kind)}" if value.name in kind.__members__ else None
    if is_named_tuple(kind):
        return inner(kind) + inner(tuple(value))
    *bases, _ = kind.__mro__
    if not bases or not all(map(dataclasses.is_dataclass, bases)):
        return None
    slots = [name for base in bases for name in vars(base).get("__slots__", ())]
    names = [field.name for field in dataclasses.fields(value)]
    if {*slots, *getattr(value, "__dict__", ())} != set(names):
        return None
    return inner(kind) + inner({name: getattr(value, name) for name in names})
