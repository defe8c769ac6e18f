"""Protocols: named sets of options, the package's and those in users' files.

name = "mylab"                # default: the file's name
base = "compact"              # one of the package's, for what [options] does not name
options = { steps_per_task = 100_000 }
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TypeAlias

from cwbench.spec import options
from cwbench.spec.config import PROTOCOLS, MethodConfig, option_groups
from cwbench.spec.errors import UserError, located, unknown
from cwbench.spec.files import checked_table, read_text
from cwbench.spec.segment import digest
from cwbench.spec.tasks import valid_name

KEYS = ("name", "base", "options")


@dataclass(frozen=True)
class Protocol:
    """The options that a protocol sets, and the name that its runs are recorded under.

    That of a file ends with a mark of its options, as in `mylab+1f3a9c`: files of one name with
    other options are other protocols.
    """

    name: str
    options: Mapping[str, Any] = field(hash=False)


ProtocolLike: TypeAlias = (
    str | Path | Protocol
)  # a name, a file, or what `parse_protocol` made of it


def parse_protocol(given: ProtocolLike) -> Protocol:
    """The protocol of that name or file. UserError, in one line, if it is unknown or wrong."""
    if isinstance(given, Protocol):
        return given
    text = str(given)  # a path, or nothing that could name a protocol
    if text.endswith(".toml"):
        with located(text):
            return _read(Path(text))
    if text not in PROTOCOLS:
        raise unknown("protocol", text, PROTOCOLS, f"known: {', '.join(PROTOCOLS)}, or file.toml")
    return Protocol(text, PROTOCOLS[text])


def protocol_title(recorded: str) -> str:
    """The name of a protocol as its author wrote it: without the mark."""
    return recorded.rpartition("+")[0] or recorded


def _read(path: Path) -> Protocol:
    content = checked_table(tomllib.loads(read_text(path)), KEYS)
    name, base = content.get("name", path.stem), content.get("base", "paper")
    with located("name"):
        if valid_name(name, "a protocol's name") in PROTOCOLS:
            raise UserError(f"{name!r} is a protocol of cwbench", "give yours another name")
    with located("base"):
        if base not in list(PROTOCOLS):  # even if it is not a string
            raise unknown("protocol", str(base), PROTOCOLS, f"known: {', '.join(PROTOCOLS)}")
    with located("options"):
        values = {**PROTOCOLS[base], **_options(content.get("options"))}
    return Protocol(f"{name}+{digest(values)[:6]}", values)


def _options(given: Any) -> dict[str, Any]:
    """Field -> value, held to the option's type and range."""
    if not isinstance(given, dict) or not given:
        raise UserError("expected a table of one or more options", "write steps_per_task = 100_000")
    groups = (MethodConfig, *option_groups().values())
    homes = {options.flag_name(f.name): (group, f.name) for group in groups for f in fields(group)}
    found = {}
    for key, value in given.items():
        if options.flag_name(key) not in homes:
            known = [name for _, name in homes.values()]
            raise unknown("option", key, known, "a protocol sets options that every method has")
        group, name = homes[options.flag_name(key)]
        with located(key):
            if name in found:
                raise UserError("given twice")
            found[name] = options.checked(group, name, value)
    for group in groups:
        options.resolve(group, found)  # what only shows as a whole: hidden = "64,many"
    return found
