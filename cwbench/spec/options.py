"""Options are declared once, as fields of a dataclass; parsers and records derive from them."""

import dataclasses
import math
import operator
from collections.abc import Iterable, Mapping, Sequence
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import numpy as np

from cwbench.spec.errors import UserError

C = TypeVar("C")
Field = dataclasses.Field[Any]


def option(
    default: Any,
    help: str,
    *,
    minimum: float | None = None,
    maximum: float | None = None,
    above: float | None = None,
    per_run: bool = False,
    rehearsal: Any = None,
    takes_memory: bool = False,
    added: bool = False,
    formerly: Any = None,
    metavar: str | None = None,
    parts: Sequence[str] = (),
    implied: Sequence[str] = (),
) -> Any:
    """A dataclass field that is also an option; the bounds are inclusive, except `above`.

    * `per_run`: runs that differ only in such options, which are floats, train in one fleet; the
      method reads them with `Method.per_run`.
    * `rehearsal`: a smaller value for estimates, if the option makes a task's end slow; with
      `takes_memory` it is used to estimate time only.
    * `added`: the option was added to a class with published results. It is left out of records
      while it has its default, so that their ids stay the same.
    * `formerly`: what results without the option did, where its default is another value. That one
      is left out of records instead.
    * `metavar`: names the value in help texts.
    * `parts`: the value is `none` or some of these, separated by commas; `implied` ones may be
      named, too, and change nothing.
    """
    metadata = {
        "help": help,
        "bounds": {"minimum": minimum, "maximum": maximum, "above": above},
        "per_run": per_run,
        "rehearsal": rehearsal,
        "added": added,
        "metavar": metavar,
        "parts": tuple(parts),
        "implied": tuple(implied),
    }
    # Metadata are part of the source of a method defined in a notebook, and so of its results' ids.
    metadata |= {"takes_memory": True} if takes_memory else {}
    metadata |= {} if formerly is None else {"formerly": formerly}
    return dataclasses.field(default=default, metadata=metadata)


def field_type(cls: type, field: Field) -> Any:
    """The declared type of a field, without `| None`."""
    try:
        hint = get_type_hints(cls)[field.name]
    except Exception as error:  # a name that only type checkers import, say
        raise UserError(f"the type of an option of {cls.__name__}: {error}") from None
    if get_origin(hint) not in (UnionType, Union):
        return hint
    kinds = [part for part in get_args(hint) if part is not NoneType]
    if len(kinds) > 1:
        raise UserError(f"option {field.name} of {cls.__name__} has several types", "declare one")
    return kinds[0]


def field_of(cls: type, name: str) -> Field:
    [field] = [field for field in dataclasses.fields(cls) if field.name == name]
    return field


# type -> what isinstance accepts, and its name in messages
KINDS: dict[Any, tuple[type | tuple[type, ...], str]] = {
    bool: (bool, "true or false"),
    int: (int, "a whole number"),
    float: ((int, float), "a number"),
    str: (str, "a text"),
}


# Of options that name no maximum: what a tensor of 32-bit numbers can index, or hold.
LARGEST: dict[Any, float] = {int: 10**9, float: 1e30}


def parse(hint: Any, text: str) -> Any:
    """A value of that type from the command line's text; 1e6 is a whole number, too."""
    try:
        if hint is float:
            return float(text)
        if hint is int:
            return _whole(text)
    except (ValueError, OverflowError):
        raise UserError(f"{text!r} is not {KINDS[hint][1]}") from None
    return text


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        value = float(text)
        if value != int(value):
            raise
        return int(value)


def members(value: Any) -> list[Any] | None:
    """What a list, set, array or iterator holds; None for one value, as texts and mappings are."""
    single = isinstance(value, str | bytes | Mapping) or getattr(value, "ndim", None) == 0
    return None if single or not isinstance(value, Iterable) else list(value)


def as_index(value: Any) -> int | None:
    """A whole number of Python, numpy or torch as Python's; None for anything else."""
    try:
        return None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        return None


def plain(cls: type, name: str, value: Any) -> Any:
    """What Python code may give for an option, as the command line has it: (64, 64) -> "64,64".

    Numbers of numpy and torch become Python's, whole ones such as 1e3 integers, and sequences a
    text where the option is a list.
    """
    field = field_of(cls, name)
    has_parts = bool(field.metadata.get("parts"))
    is_list = has_parts or "," in (field.metadata.get("metavar") or "")
    if is_list and (parts := members(value)) is not None:
        if isinstance(value, set | frozenset):
            if not has_parts:
                raise UserError(f"{name}={value!r}: a set has no order", "give a list")
            parts.sort(key=str)  # that of a set differs between processes
        return ",".join(str(_integer(of_python(part))) for part in parts) or "none"
    value = of_python(value)
    return _integer(value) if field_type(cls, field) is int else value


def of_python(value: Any) -> Any:
    """Numbers and arrays of numpy and torch as Python's; single precision by its digits: 0.1."""
    if not hasattr(value, "tolist"):
        return value
    dtype = str(getattr(value, "dtype", "")).removeprefix("torch.")
    if dtype in ("float16", "float32") and value.ndim == 0:
        return float(str(np.dtype(dtype).type(value.item())))
    return value.tolist()


def _integer(value: Any) -> Any:
    """An integer where a number is a whole one, else the value."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def checked(cls: type, name: str, value: Any) -> Any:
    """A value held to its option's type and range, in the form that records have."""
    value = plain(cls, name, value)
    field = field_of(cls, name)
    hint = field_type(cls, field)
    if get_origin(hint) is Literal:
        return _choice(value, get_args(hint))
    if get_origin(hint) is tuple:
        return _texts(value)
    if field.metadata["parts"] and isinstance(value, str):
        return _parts(value, field.metadata["parts"], field.metadata["implied"])
    kind, words = KINDS.get(hint, (hint, f"a {getattr(hint, '__name__', hint)}"))
    if not isinstance(value, kind) or (isinstance(value, bool) and hint is not bool):
        raise UserError(f"{value!r} is not {words}")
    if hint in LARGEST:
        bounds = {**field.metadata["bounds"]}
        bounds["maximum"] = LARGEST[hint] if bounds["maximum"] is None else bounds["maximum"]
        check_range(value, **bounds)
    return float(value) if hint is float else value


def _choice(value: Any, choices: Sequence[Any]) -> Any:
    """The choice that is equal: 2 for 2.0, but never 1 for true."""
    for one in choices:
        if one == value and isinstance(one, bool) == isinstance(value, bool):
            return one
    raise UserError(f"{value!r} is not one of {', '.join(map(repr, choices))}")


def _texts(value: Any) -> tuple[str, ...]:
    several = [value] if isinstance(value, str) else members(value)
    if several is None or not all(isinstance(one, str) for one in several):
        raise UserError(f"{value!r} is not a list of texts")
    return tuple(several)


def _parts(text: str, known: Sequence[str], implied: Sequence[str]) -> str:
    """The parts named, in the order of `known`, so that equal values are equal texts."""
    named = {part.strip() for part in text.split(",")}
    for part in named - {*known, *implied}:
        if part != "none" or len(named) > 1:
            raise UserError(f"{part!r} is not one of {', '.join([*known, *implied])}")
    return ",".join(part for part in known if part in named) or "none"


def check_range(
    value: float,
    *,
    minimum: float | None = None,
    maximum: float | None = None,
    above: float | None = None,
) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise UserError(f"{value!r} is not a finite number")
    if minimum is not None and value < minimum:
        raise UserError(f"{shorten(value)} is too small", f"the smallest value is {minimum:,}")
    if above is not None and value <= above:
        raise UserError(f"{shorten(value)} is too small", f"it must be above {above:,}")
    if maximum is not None and value > maximum:
        raise UserError(f"{shorten(value)} is too large", f"the largest value is {maximum:,}")


def shorten(value: float) -> str:
    """A number for a message: hundreds of digits help nobody."""
    text = str(value)
    return text if len(text) <= 30 else f"{text[:20]}... ({len(text)} digits)"


def check_all(values: Mapping[str, Any], *classes: type) -> dict[str, Any]:
    """Values by field name, each held to its option in one of the classes; None is left out."""
    homes = {field.name: cls for cls in classes for field in dataclasses.fields(cls)}
    result = {}
    for name, value in values.items():
        if value is None:
            continue
        try:
            result[name] = checked(homes[name], name, value)
        except UserError as error:
            raise UserError(f"--{flag_name(name)}: {error.message}", error.hint) from None
    return result


def take(cls: type[C], values: dict[str, Any]) -> C:
    """The options of a group, taken out of all that were given and checked."""
    fields: Sequence[Field] = dataclasses.fields(cls)  # type: ignore[arg-type]
    own = {field.name: values.pop(field.name) for field in fields if field.name in values}
    return cls(**check_all(own, cls))


def flag_name(name: str) -> str:
    """A field's name on the command line; a trailing underscore evades Python's keywords."""
    return name.rstrip("_").replace("_", "-")


def resolve(cls: type[C], *layers: Mapping[str, Any]) -> C:
    """Build the object; the first layer that names a field with a value other than None wins."""
    values: dict[str, Any] = {}
    for field in dataclasses.fields(cls):  # type: ignore[arg-type]
        for layer in layers:
            if layer.get(field.name) is not None:
                values[field.name] = layer[field.name]
                break
    return cls(**values)


def per_run_names(cls: type) -> list[str]:
    """The options in which the runs of one fleet may differ."""
    return [field.name for field in dataclasses.fields(cls) if field.metadata.get("per_run")]


def shared_options(config: C) -> C:
    """The config of all runs of a fleet; reading an option in which they may differ is an error."""

    def guard(name: str) -> property:
        def refuse(_: object) -> None:
            raise AttributeError(
                f"{name} may differ between runs: read it with self.per_run(lambda c: c.{name})"
            )

        return property(refuse)

    cls = type(config)
    guarded = type(cls.__name__, (cls,), {name: guard(name) for name in per_run_names(cls)})
    shared: Any = object.__new__(guarded)
    vars(shared).update(vars(config))
    return cast(C, shared)


def rehearsed(config: C, factor: int = 1, *, memory: bool = False) -> C:
    """The config that estimates use, with values up to `factor` times those of rehearsals.

    With `memory`, options that take some have their real values.
    """
    values = _rehearsal_values(config, factor, memory)
    return dataclasses.replace(config, **values)  # type: ignore[type-var]


def rehearsal_scale(config: Any, factor: int) -> float | None:
    """How much larger the real values are than those; None if the config has no such option."""
    pairs = ((getattr(config, name), x) for name, x in _rehearsal_values(config, factor).items())
    return max((real / x for real, x in pairs if isinstance(real, int | float)), default=None)


def _rehearsal_values(config: Any, factor: int, memory: bool = False) -> dict[str, Any]:
    values = {}
    for field in dataclasses.fields(config):
        real, small = getattr(config, field.name), field.metadata.get("rehearsal")
        if small is not None and not (memory and field.metadata.get("takes_memory")):
            number = isinstance(real, int | float)
            values[field.name] = min(real, factor * small) if number else small
    return values


def field_names(*classes: type) -> set[str]:
    return {field.name for cls in classes for field in dataclasses.fields(cls)}


def to_record(config: Any) -> dict[str, Any]:
    """All options, apart from those with the value that records without them mean."""
    left_out = _left_out(type(config))
    values = {field.name: getattr(config, field.name) for field in dataclasses.fields(config)}
    return {k: x for k, x in values.items() if not (k in left_out and x == left_out[k])}


def _left_out(cls: type) -> dict[str, Any]:
    """What a record means that does not name an option."""
    fields: Sequence[Field] = dataclasses.fields(cls)
    added = {field.name: field.default for field in fields if field.metadata.get("added")}
    changed = {f.name: f.metadata["formerly"] for f in fields if "formerly" in f.metadata}
    return added | changed


def completed(cls: type, record: Mapping[str, Any]) -> dict[str, Any]:
    """A record with the values of the options it leaves out."""
    return _left_out(cls) | dict(record)


def from_record(cls: type[C], record: Mapping[str, Any]) -> C:
    """The inverse of `to_record`; strict, so that old records fail loudly."""
    names, left_out = field_names(cls), _left_out(cls)
    unknown, missing = sorted(set(record) - names), sorted(names - {*left_out} - set(record))
    if unknown or missing:
        raise UserError(f"record of {cls.__name__}: unknown keys {unknown}, missing keys {missing}")
    return cls(**completed(cls, record))
