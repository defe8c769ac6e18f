"""`cwbench methods`, `sequences` and `tasks`: all known names."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from cwbench.cli.console import json_option, show, show_problems
from cwbench.spec.options import flag_name

if TYPE_CHECKING:
    from cwbench.methods import Entry


@click.command()
@json_option
def sequences(as_json: bool) -> None:
    """List the named sequences, and the other ways to name one."""
    from cwbench.sequences import CW_TASKS, get, names

    found = [get(name) for name in names()]
    rows = [(one.name, one.summary or " ".join(one.tasks), one.source) for one in found]
    rows += [
        ("orders-cw10-K", "cw10 in a random order, the same for everyone; K is any number", ""),
        ("pair-I-J", f"tasks I and J, ids 0 to {len(CW_TASKS) - 1} (`cwbench tasks`)", ""),
        ("single-TASK", "one task alone", ""),
        ("cw3-*", "every named sequence like this: also cw6-*, pair-5-*, single-*", ""),
        ("a,b,c", "any tasks, in this order", ""),
        ("file.toml", "a sequence file: docs/sequences.md", ""),
    ]
    show(rows, "sequence", "tasks", "from", as_json=as_json)


@click.command()
@json_option
def tasks(as_json: bool) -> None:
    """List the tasks by suite; Continual World's ten have the ids that `pair-I-J` refers to."""
    from cwbench.sequences import OTHER_TASKS
    from cwbench.spec.tasks import CW_TASKS, METAWORLD_TASKS

    ids = {task: str(number) for number, task in enumerate(CW_TASKS)}
    rows = [(ids.get(task, ""), task, "metaworld") for task in METAWORLD_TASKS]
    rows += [("", task, sequence.suite) for task, sequence in OTHER_TASKS.items()]
    show(rows, "id", "task", "suite", as_json=as_json)


@click.command()
@click.option("--names", is_flag=True, help="Only the names, one per line.")
@json_option
def methods(names: bool, as_json: bool) -> None:
    """List the methods by family; `cwbench run --method NAME --help` shows one's options."""
    from cwbench.methods import ALIASES, FAMILIES, known, unusable

    entries = known()
    show_problems(unusable().values())
    if names:
        for name in entries:
            click.echo(name)
        return
    also = {target: f" ({alias})" for alias, target in ALIASES.items()}
    rows = [
        (title, name + also.get(name, ""), _described(entry))
        for family, title in FAMILIES.items()
        for name, entry in entries.items()
        if entry.family == family
    ]
    show(rows if as_json else _once(rows), "family", "method", "what it does", as_json=as_json)


def _described(entry: "Entry") -> str:
    changed = ", ".join(f"{flag_name(key)}={value}" for key, value in entry.options.items())
    return f"{entry.base} with {changed}" if entry.base else entry.summary


def _once(rows: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """The first cell only where it changes."""
    firsts = ["", *(row[0] for row in rows)]
    return [
        ("" if row[0] == before else row[0], *row[1:])
        for row, before in zip(rows, firsts, strict=False)
    ]
