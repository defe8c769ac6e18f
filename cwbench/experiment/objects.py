"""Methods and sequences handed over as Python objects instead of names."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from cwbench import sequences
from cwbench.spec.errors import UserError
from cwbench.spec.notebook_source import source_hash
from cwbench.spec.source import NOTED, check_unchanged, in_file, recorded_alone, short_hash
from cwbench.spec.tasks import Task

if TYPE_CHECKING:
    from cwbench.learner.method import Method
    from cwbench.methods import Entry

SequenceLike = str | Path | sequences.Sequence | Iterable[str | Task]


def find_method(method: str | type[Method[Any]]) -> tuple[str, str, Entry]:
    """What a method is called, the name it is recorded under, and its entry, for training."""
    from cwbench.methods import load

    if isinstance(method, str):
        return (method, *load(method))
    found = _find_class(method)
    check_unchanged(method)
    return (found[0], *found)


def find_trained(method: str | type[Method[Any]]) -> tuple[str, Entry, set[str | None]]:
    """The name a method is recorded under, its entry, and the sources its results may have.

    Besides today's: the class's file alone, and the file that is named. Files may have been edited
    since they were imported, as the class is the one in memory.
    """
    from cwbench.methods import find

    name, entry = find(method) if isinstance(method, str) else _find_class(method)
    if entry.source is None:
        return name, entry, {None}
    texts = [vars(entry.method)[NOTED][1]] if in_file(entry.method) else []
    if isinstance(method, str) and ".py:" in method:
        texts.append(Path(method.rpartition(":")[0]).read_bytes())
    alone = {short_hash(text) for text in texts if recorded_alone(entry.method, text)}
    return name, entry, {entry.source, *alone}


def _find_class(method: type[Method[Any]]) -> tuple[str, Entry]:
    """The name a class is recorded under, and its entry."""
    from cwbench.learner.method import Method
    from cwbench.methods import Entry, known

    if not (isinstance(method, type) and issubclass(method, Method)):
        raise UserError(
            f"{method!r} is not a method", "give a name or a subclass of cwbench.Method"
        )
    for name, entry in known().items():
        if entry.method is method and entry.base is None:
            return name, entry
    return method.__name__, Entry(method, source=source_hash(method))


def find_sequences(wanted: SequenceLike) -> list[sequences.Sequence]:
    """A name or pattern as on the command line, a sequence, or its tasks, by name or as objects."""
    if isinstance(wanted, str | PurePath):
        return sequences.expand(str(wanted))
    if isinstance(wanted, sequences.Sequence):
        # Meta-World is what a sequence says that names no suite.
        unnamed = wanted.suite == "metaworld"
        return [sequences.checked(dataclasses.replace(wanted, suite="") if unnamed else wanted)]
    parts = _in_order(wanted)
    definitions = [task for task in parts if isinstance(task, Task)]
    tasks = [task.name if isinstance(task, Task) else task for task in parts]
    if not tasks or not all(isinstance(task, str) for task in tasks):
        raise UserError(f"{parts!r} is not a sequence", "give a name, or a list of tasks")
    if definitions and len(definitions) < len(tasks):
        raise UserError("a sequence has tasks by name and tasks as objects", "use only one kind")
    made = sequences.Sequence("-".join(tasks), tuple(tasks), "", tuple(definitions))
    return [sequences.checked(made)]


def _in_order(wanted: Any) -> list[Any]:
    """Several things as a list; UserError if it is a set, which has no order, or not several."""
    if not isinstance(wanted, Iterable) or isinstance(wanted, set | frozenset | Mapping):
        raise UserError(f"{wanted!r} is not a sequence", "give a name, or a list of tasks")
    return list(wanted)


def find_several(wanted: SequenceLike | Iterable[SequenceLike]) -> list[sequences.Sequence]:
    """As `find_sequences`, or a list of sequences. A list of nothing but tasks is one sequence."""
    if isinstance(wanted, str) or not isinstance(wanted, Iterable):
        return find_sequences(wanted)
    parts = _in_order(wanted)
    if all(
        isinstance(one, Task) or (isinstance(one, str) and sequences.is_task(one)) for one in parts
    ):
        return find_sequences(parts)
    found = [one for part in parts for one in find_sequences(part)]
    return [one for index, one in enumerate(found) if one not in found[:index]]
