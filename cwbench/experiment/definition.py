"""Experiments: methods, sequences and seeds to be trained, read from TOML files.

The paper's own are files in `cwbench/experiment/paper`, in the format a user's file has.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cwbench import sequences
from cwbench.experiment.build import (
    check_count,
    find_option,
    load_method,
    parse_seeds,
    parse_unshared,
    runs_of,
)
from cwbench.spec import options
from cwbench.spec.errors import UserError, located, unknown
from cwbench.spec.files import checked_table, read_text
from cwbench.spec.protocol import Protocol, parse_protocol

if TYPE_CHECKING:
    from cwbench.experiment.build import Methods
    from cwbench.learner.method import Method
    from cwbench.methods import Entry
    from cwbench.planning.plan import Run

FOLDER = Path(__file__).parent / "paper"
KEYS = ("name", "description", "methods", "options", "sequences", "seeds", "protocol")
METHOD_KEYS = ("name", "options", "unshared")


@dataclass(frozen=True)
class Member:
    """A method with options: a row of a table."""

    method: str | type[Method[Any]]  # a class only in Python
    options: Mapping[str, Any] = field(default_factory=dict)
    unshared: tuple[str, ...] = ()
    swept: tuple[str, ...] = ()  # options of which the experiment has several values


@dataclass(frozen=True)
class Experiment:
    name: str
    description: str
    members: tuple[Member, ...]
    sequences: tuple[sequences.Sequence, ...]
    seeds: tuple[int, ...]
    protocol: Protocol
    written: str = ""  # its sequences as the file has them

    def __len__(self) -> int:
        return len(self.members) * len(self.sequences) * len(self.seeds)

    def runs(self) -> tuple[list[Run], Methods]:
        """Its runs, and the methods they need."""
        check_count(len(self))
        runs: list[Run] = []
        methods = {}
        for member in self.members:
            recorded, entry = load_method(member.method)
            methods[recorded] = entry.method
            runs += runs_of(
                member.method if isinstance(member.method, str) else recorded,
                recorded,
                entry,
                self.protocol,
                member.options,
                wanted=self.sequences,
                seeds=self.seeds,
                unshared=member.unshared,
                swept=member.swept,
            )
        return runs, methods

    def changed(self, protocol: str | None, seeds: str | None) -> Experiment:
        """The same with another protocol or other seeds, where they are given."""
        made = replace(self, protocol=parse_protocol(protocol)) if protocol else self
        return replace(made, seeds=tuple(parse_seeds(seeds))) if seeds else made


def names() -> list[str]:
    """The paper's experiments: cw3 before cw10."""
    found = [file.stem for file in FOLDER.glob("*.toml")]
    return sorted(found, key=lambda name: (name.rstrip("0123456789"), len(name), name))


def path_of(name: str) -> Path:
    """The file of a named experiment, or a user's."""
    if name.endswith(".toml"):
        return Path(name)
    if name not in names():
        advice = "`cwbench experiment list` shows all; a file's name ends with .toml"
        raise unknown("experiment", name, names(), advice)
    return FOLDER / f"{name}.toml"


def read(name: str) -> Experiment:
    """The experiment of that name or file. UserError, in one line, if it is wrong."""
    path = path_of(name)
    with located(str(path)):
        content = checked_table(tomllib.loads(read_text(path)), KEYS)
        with located("name"):
            title = _string(content.get("name", path.stem))
        with located("description"):
            description = _string(content.get("description", ""))
        with located("protocol"):
            protocol = parse_protocol(_string(content.get("protocol", "paper")))
        with located("seeds"):
            seeds = _seeds(content.get("seeds", "0"))
        with located("sequences"):
            written = _strings(content.get("sequences"))
            wanted = _sequences(written)
        shared = content.get("options", {})
        entries = content.get("methods", [])
        with located("methods"):
            if not isinstance(entries, list) or not entries:
                raise UserError("expected a list of one or more methods")
        members: list[Member] = []
        for number, entry in enumerate(entries, start=1):
            with located(f"methods, number {number}"):
                members += members_of(entry, shared)
        made = Experiment(
            title, description, tuple(members), wanted, tuple(seeds), protocol, ", ".join(written)
        )
        made.runs()  # what only shows when options meet: more head layers than layers
        return made


def _string(value: Any) -> str:
    if not isinstance(value, str):
        raise UserError(f"expected a text, found {value!r}")
    return value


def _strings(value: Any) -> list[str]:
    if not isinstance(value, list) or not value:
        raise UserError("expected a list of one or more names")
    return [_string(item) for item in value]


def _seeds(value: Any) -> list[int]:
    """`"0-4"`, `3` or `[0, 1, 2]`."""
    items = value if isinstance(value, list) else [value]
    if any(isinstance(item, bool) or not isinstance(item, str | int) for item in items):
        raise UserError(f'expected seeds such as "0-4", 3 or [0, 1, 2], found {value!r}')
    return parse_seeds(",".join(map(str, items)))


def _sequences(written: Sequence[str]) -> tuple[sequences.Sequence, ...]:
    found = [one for text in written for one in sequences.expand(text)]
    return tuple(dict.fromkeys(found))


def members_of(entry: Any, shared: Any) -> list[Member]:
    """A method as a name or a table; every list among its options multiplies it."""
    table = {"name": entry} if isinstance(entry, str) else checked_table(entry, METHOD_KEYS)
    with located("name"):
        method = table.get("name", "")
        recorded, loaded = load_method(method if isinstance(method, type) else _string(method))
        name = method if isinstance(method, str) else recorded
    with located("options"):
        own: Any = table.get("options", {})
        choices = _choices(shared, name, loaded) | _choices(own, name, loaded)
    with located("unshared"):
        given = _several(table.get("unshared", "none"))
        ways = [tuple(parse_unshared(_string(text))) for text in given]
    swept = tuple(key for key, values in choices.items() if len(values) > 1)
    check_count(math.prod(map(len, choices.values())) * len(ways))
    return [
        Member(method, dict(zip(choices, values, strict=True)), way, swept)
        for *values, way in product(*choices.values(), ways)
    ]


def _choices(given: Any, name: str, entry: Entry) -> dict[str, list[Any]]:
    """Field -> values asked for, each held to the option's type."""
    if not isinstance(given, dict):
        raise UserError(f"expected a table of options, found {given!r}")
    choices: dict[str, list[Any]] = {}
    for key, value in given.items():
        group, field_name = find_option(key, name, entry, as_flag=True)
        with located(key):
            if field_name in choices:
                raise UserError("given twice")
            choices[field_name] = [
                options.checked(group, field_name, one) for one in _several(value)
            ]
    return choices


def _several(value: Any) -> list[Any]:
    """A list is a sweep; it must not be empty or hold a value twice."""
    values = value if isinstance(value, list) else [value]
    if not values:
        raise UserError("the list of values is empty")
    if twice := [one for index, one in enumerate(values) if one in values[:index]]:
        raise UserError(f"{values!r} names {twice[0]!r} twice")
    return values
