"""Sequences from files."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cwbench.sequences.sequence import Sequence
from cwbench.spec.config import ENV_CONFIGS
from cwbench.spec.errors import UserError, located
from cwbench.spec.files import checked_table, read_text
from cwbench.spec.tasks import Score, Task

KEYS = ("name", "suite", "tasks")
GYMNASIUM_KEYS = ("name", "suite", "task")
TASK_KEYS = ("name", "id", "kwargs", "wrappers", "score", "horizon")


def read(path: Path) -> Sequence:
    """The sequence that a file describes; UserError with one line that says what is wrong with it.

    Its name and tasks are still to be checked; without a suite in the file its suite is empty.
    """
    return _sequence(tomllib.loads(read_text(path)), path.stem)


def _sequence(content: Mapping[str, Any], stem: str) -> Sequence:
    if isinstance(content.get("task"), list) and "suite" not in content:
        hint = 'write suite = "gymnasium" above the first of them'
        raise UserError("tables [[task]] are for the gymnasium suite", hint)
    suite = content.get("suite", "metaworld")
    if suite not in list(ENV_CONFIGS):  # even if not a string
        raise UserError(f"unknown suite {suite!r}; known: {', '.join(ENV_CONFIGS)}")
    checked_table(content, GYMNASIUM_KEYS if suite == "gymnasium" else KEYS)
    name = content.get("name", stem)
    if suite == "gymnasium":
        return _gymnasium(name, content.get("task"))
    return Sequence(name, content.get("tasks", ()), content.get("suite", ""))


def _gymnasium(name: str, entries: Any) -> Sequence:
    if not isinstance(entries, list) or not entries:
        raise UserError("a gymnasium sequence has one or more tables [[task]]")
    tasks = [_task(entry, number) for number, entry in enumerate(entries, start=1)]
    return Sequence(name, tuple(task.name for task in tasks), "gymnasium", tuple(tasks))


def _task(entry: Any, number: int) -> Task:
    if not isinstance(entry, dict):
        raise UserError(f"task {number}: expected a table [[task]], found {entry!r}")
    with located(f"task {entry.get('name', entry.get('id', number))}"):
        return _checked(entry)


def _checked(entry: Mapping[str, Any]) -> Task:
    checked_table(entry, TASK_KEYS)
    env = entry.get("id")
    if not isinstance(env, str):
        raise UserError('`id` must name an environment, such as "HalfCheetah-v5"')
    if "score" not in entry:
        raise UserError(
            '`score` is missing: write "success", { threshold = X } '
            "or { return_from = X, return_to = Y }"
        )
    return Task(
        entry.get("name", env.rpartition(":")[2].replace("/", "-")),
        env,
        entry.get("kwargs", {}),
        tuple(_wrapper(one) for one in _list(entry.get("wrappers", []))),
        Score.parse(entry["score"]),
        entry.get("horizon"),
    )


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise UserError(f"`wrappers` must be a list, found {value!r}")
    return value


def _wrapper(value: Any) -> Any:
    if isinstance(value, dict):
        checked_table(value, ("wrapper", "kwargs"))
    name = value.get("wrapper") if isinstance(value, dict) else value
    if not isinstance(name, str) or ":" not in name:
        raise UserError(f'wrapper {value!r} is not a name such as "mypackage:MassScale"')
    return value
