"""Options are declared once, as fields of a dataclass; parser and record derive from them."""

import dataclasses
import math
from collections.abc import Mapping
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, cast, get_args, get_origin, get_type_hints

import click

C = TypeVar("C")


def option(
    default: Any,
    help: str,
    *,
    minimum: float | None = None,
    per_run: bool = False,
    rehearsal: Any = None,
) -> Any:
    """A dataclass field that is also a command-line option; `minimum` is inclusive.

    Runs that differ only in `per_run` options, which are floats, train in one fleet; the method
    reads them with `Method.per_run`. Estimates use the value `rehearsal`, for an option that costs
    time but no memory.
    """
    metadata = {"help": help, "min": minimum, "per_run": per_run, "rehearsal": rehearsal}
    return dataclasses.field(default=default, metadata=metadata)


def field_type(cls: type, field: dataclasses.Field[Any]) -> Any:
    return get_type_hints(cls)[field.name]


def _without_none(hint: Any) -> Any:
    if get_origin(hint) is UnionType:
        [hint] = [part for part in get_args(hint) if part is not NoneType]
    return hint


def _click_type(hint: Any, minimum: float | None) -> Any:
    hint = _without_none(hint)
    if get_origin(hint) is Literal:
        return click.Choice(get_args(hint))
    if hint is int:
        return click.IntRange(min=None if minimum is None else int(minimum))
    if hint is float:
        return click.FloatRange(min=minimum)
    if hint is bool:
        return click.BOOL
    if hint is str:
        return click.STRING
    raise TypeError(f"no command-line form for {hint!r}")


KINDS: dict[Any, tuple[type | tuple[type, ...], str]] = {
    bool: (bool, "true or false"),
    int: (int, "a whole number"),
    float: ((int, float), "a number"),
}


def checked(cls: type, name: str, value: Any) -> Any:
    """A value from a file, held to its option's type and range; BadParameter if it is not that.

    Stricter than the command line, where everything is text: 3.5 is no whole number, 1 no switch.
    """
    [field] = [field for field in dataclasses.fields(cls) if field.name == name]
    hint = _without_none(field_type(cls, field))
    kind, words = KINDS.get(hint, (str, "a text"))
    if not isinstance(value, kind) or (isinstance(value, bool) and hint is not bool):
        raise click.BadParameter(f"{value!r} is not {words}")
    if isinstance(value, float) and not math.isfinite(value):
        raise click.BadParameter(f"{value!r} is not a finite number")
    return _click_type(hint, field.metadata["min"]).convert(value, None, None)


def flag_name(name: str) -> str:
    """A field's name on the command line; a trailing underscore evades Python's keywords."""
    return name.rstrip("_").replace("_", "-")


def click_options(cls: type, defaults: Mapping[str, Any] | None = None) -> list[click.Option]:
    """One option per field. `defaults` replaces what --help shows; the parsed default is None.

    None stands for "not given", so that presets and protocols can fill the gap (`resolve`).
    """
    shown = {f.name: f.default for f in dataclasses.fields(cls)} | dict(defaults or {})
    options = []
    for field in dataclasses.fields(cls):
        hint = field_type(cls, field)
        flag = flag_name(field.name)
        names = [f"--{flag}/--no-{flag}"] if hint is bool else [f"--{flag}"]
        value = shown[field.name]
        text = "none" if value is None else str(value).lower() if hint is bool else str(value)
        options.append(
            click.Option(
                [*names, field.name],
                type=None if hint is bool else _click_type(hint, field.metadata["min"]),
                default=None,
                help=f"{field.metadata['help']}  [default: {text}]",
            )
        )
    return options


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


def rehearsed(config: C) -> C:
    """The config that estimates use."""
    values = {
        field.name: field.metadata["rehearsal"]
        for field in dataclasses.fields(config)  # type: ignore[arg-type]
        if field.metadata["rehearsal"] is not None
    }
    return dataclasses.replace(config, **values)  # type: ignore[type-var]


def field_names(*classes: type) -> set[str]:
    return {field.name for cls in classes for field in dataclasses.fields(cls)}


def from_record(cls: type[C], record: Mapping[str, Any]) -> C:
    """The object that `dataclasses.asdict` recorded; strict, so that old records fail loudly."""
    names = field_names(cls)
    unknown, missing = sorted(set(record) - names), sorted(names - set(record))
    if unknown or missing:
        raise ValueError(
            f"record of {cls.__name__}: unknown keys {unknown}, missing keys {missing}"
        )
    return cls(**record)
