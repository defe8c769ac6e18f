"""Click options made from dataclass fields declared with `cwbench.spec.options.option`."""

import dataclasses
from collections.abc import Callable, Collection, Iterable, Mapping
from difflib import get_close_matches
from typing import Any, Literal, TypeVar, get_args, get_origin

import click

from cwbench.cli.completers import complete_method, complete_protocol
from cwbench.spec import options
from cwbench.spec.config import PROTOCOLS
from cwbench.spec.errors import UserError, unknown

Command = TypeVar("Command", bound=Callable[..., Any] | click.Command)
Decorator = Callable[[Any], Any]


class Number(click.ParamType):  # type: ignore[type-arg]
    """A number within bounds, for options that are not fields of a dataclass."""

    def __init__(self, hint: type, **bounds: float) -> None:
        self.hint, self.bounds = hint, bounds
        self.name = {int: "integer", float: "float"}[hint]

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            parsed = options.parse(self.hint, value) if isinstance(value, str) else value
            options.check_range(parsed, **self.bounds)
        except UserError as error:
            self.fail(str(error), param, ctx)
        return parsed


class Value(click.ParamType):  # type: ignore[type-arg]
    """Text that is parsed and held to a range as the option's field says."""

    def __init__(self, cls: type, name: str) -> None:
        self.cls, self.field = cls, name
        self.hint = options.field_type(cls, options.field_of(cls, name))
        self.name = {int: "integer", float: "float"}.get(self.hint, "text")

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            parsed = options.parse(self.hint, value) if isinstance(value, str) else value
            return options.checked(self.cls, self.field, parsed)
        except UserError as error:
            self.fail(str(error), param, ctx)


def click_type(cls: type, field: options.Field) -> "click.ParamType[Any]":
    hint = options.field_type(cls, field)
    if get_origin(hint) is Literal:
        return click.Choice(get_args(hint))
    return Value(cls, field.name)


def flags_of(params: Iterable[click.Parameter]) -> list[str]:
    options = [param for param in params if isinstance(param, click.Option)]
    return [flag for option in options for flag in (*option.opts, *option.secondary_opts)]


def unknown_option(flag: str, known: Collection[str], command: str) -> UserError:
    """The closest option; one that begins with the given text is closer than others."""
    longer = [name for name in known if name.startswith(flag)]
    # Dashes, which all have, would make any two short options look alike.
    words = {name.lstrip("-"): name for name in known}
    close = [words[word] for word in get_close_matches(flag.lstrip("-"), words, n=1)]
    return unknown("option", flag, longer or close, f"`{command} --help` lists all")


def field_option(cls: type, name: str, param: str = "", **settings: Any) -> Decorator:
    """The option of one field, for a command of its own; `settings` replace those of the field."""
    field, flag = options.field_of(cls, name), options.flag_name(name)
    switch = options.field_type(cls, field) is bool
    usual: dict[str, Any] = {
        "type": None if switch else click_type(cls, field),
        "default": field.default,
        "show_default": True,
        "help": field.metadata["help"].partition("  [default:")[0],
    }
    flags = f"--{flag}/--no-{flag}" if switch else f"--{flag}"
    return click.option(flags, param or name, **usual | settings)


def seeds_and_protocol(command: Any) -> Any:
    """Add --seeds and --protocol, which several commands have."""
    protocol = click.option(
        "--protocol", default="paper", show_default=True, shell_complete=complete_protocol,
        help=f"Steps, evaluations and networks: {', '.join(PROTOCOLS)}.",
    )  # fmt: skip
    seeds = click.option(
        "--seeds", default="0", show_default=True, help="Seeds: 3, 0-4 or 0,2,5-7."
    )
    return seeds(protocol(command))


def names_in(texts: Iterable[str]) -> tuple[str, ...]:
    """Names that were given one by one or joined by commas, each once."""
    return tuple(dict.fromkeys(name for text in texts for name in text.split(",")))


def methods_option(**settings: Any) -> Callable[[Command], Command]:
    """--method of commands that take several."""
    return click.option(
        "--method", "names", multiple=True, shell_complete=complete_method,
        callback=lambda ctx, param, texts: names_in(texts), **settings,
    )  # fmt: skip


method_option = click.option(
    "--method", "files", multiple=True, metavar="FILE.py:CLASS",
    help="Where a method of your own is. May be given several times.",
)  # fmt: skip


def own_methods(names: Iterable[str]) -> dict[str, Any]:
    """Versions of each method's class, by the name it is recorded under."""
    from cwbench import methods

    found: dict[str, tuple[Any, ...]] = {}
    for recorded, entry in map(methods.load, names):
        found[recorded] = (*found.get(recorded, ()), entry.method)
    return found


class GroupedOption(click.Option):
    """An option that --help shows under a heading."""

    def __init__(self, *args: Any, group: str, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.group = group


class GroupedCommand(click.Command):
    """A command whose --help has a section for each group of options."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        groups: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            if isinstance(param, click.Option) and (record := param.get_help_record(ctx)):
                groups.setdefault(getattr(param, "group", "Options"), []).append(record)
        for title, records in groups.items():
            with formatter.section(title):
                formatter.write_dl(records)


def click_options(
    cls: type, defaults: Mapping[str, Any] | None = None, *, group: str
) -> list[click.Option]:
    """One option per field. `defaults` replaces what --help shows; the parsed default is None.

    None stands for "not given", so that presets and protocols can fill the gap (`resolve`).
    """
    shown = {f.name: f.default for f in dataclasses.fields(cls)} | dict(defaults or {})
    return [
        _click_option(cls, field, shown[field.name], group) for field in dataclasses.fields(cls)
    ]


def _click_option(cls: type, field: options.Field, shown: Any, group: str) -> click.Option:
    flag, hint = options.flag_name(field.name), options.field_type(cls, field)
    switch, several = hint is bool, get_origin(hint) is tuple
    return GroupedOption(
        [f"--{flag}/--no-{flag}" if switch else f"--{flag}", field.name],
        type=None if switch or several else click_type(cls, field),
        multiple=several,
        group=group,
        default=None,
        metavar=field.metadata["metavar"],
        help=field.metadata["help"] + _default_text(field, shown) + _range_text(field),
    )


def _default_text(field: options.Field, shown: Any) -> str:
    if "[default:" in field.metadata["help"] or shown == ():
        return ""
    text = str(shown)
    if shown is None or isinstance(shown, bool):
        text = text.lower()
    return f"  [default: {text}]"


def _range_text(field: options.Field) -> str:
    words = {"minimum": "at least", "above": "above", "maximum": "at most"}
    bounds = field.metadata["bounds"]
    known = {key: f"{bounds[key]:,.10g}" for key in words if bounds[key] is not None}
    if {"minimum", "maximum"} <= known.keys():
        return f"  [{known['minimum']} to {known['maximum']}]"
    text = ", ".join(f"{words[key]} {bound}" for key, bound in known.items())
    return f"  [{text}]" if text else ""
