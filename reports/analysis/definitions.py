"""Tasks that sequences define themselves, as in the gymnasium suite.

The environment's record of such a run lists the tasks of its sequence. Which tasks a sequence has
is no setting: two sequences share tables, and means, as two of Meta-World do, unless one name
stands for different tasks.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cwbench.spec.segment import SETUP_KEYS, digest

OF_TASKS = ("tasks", "horizon", "obs_size", "action_size")  # in the record of an environment
Row = dict[str, Any]
Record = Mapping[str, Any]


def definitions(env: Record) -> dict[str, Record]:
    """Task -> all that defines it, with the sizes to which its sequence is padded.

    Empty for suites whose tasks need no definition.
    """
    tasks = env.get("tasks")
    if not isinstance(tasks, list) or not all(isinstance(task, Mapping) for task in tasks):
        return {}
    sizes = {key: env.get(key) for key in ("obs_size", "action_size")}
    return {str(task.get("name")): {**task, "padded": sizes} for task in tasks}


def env_options(env: Record) -> dict[str, Any]:
    """What is left of an environment's record: its options."""
    defined = bool(definitions(env))
    return {key: value for key, value in env.items() if not (defined and key in OF_TASKS)}


def without_definitions(
    rows: Sequence[Row], segments: Mapping[str, Record], notes: list[str]
) -> list[Row]:
    """Runs whose setup has the environment's options, but not the tasks of their sequence.

    They get these as `env`, and `definitions` of the tasks that their settings meet. Runs on tasks
    that are defined in several ways keep their setups, and so have tables of their own.
    """
    records = _records(rows, segments)
    scopes = {setup: _without_tasks(record, "env", "schedule") for setup, record in records.items()}
    meanings: dict[str, dict[str, dict[str, Record]]] = defaultdict(lambda: defaultdict(dict))
    for setup, record in records.items():
        for task, one in definitions(record["env"]).items():
            meanings[scopes[setup]][task][digest(one)] = one
    made: dict[str, Row] = {}
    mixed: dict[str, None] = {}
    for setup, record in records.items():
        known, own = meanings[scopes[setup]], definitions(record["env"])
        if several := [task for task in own if len(known[task]) > 1]:
            made[setup] = {"definitions": own}
            mixed |= dict.fromkeys(several)
        else:
            one_each = {task: next(iter(found.values())) for task, found in known.items()}
            made[setup] = {
                "setup": _without_tasks(record, *SETUP_KEYS),
                "env": env_options(record["env"]),
                "definitions": one_each,
            }
    if mixed:
        notes.append(
            f"{', '.join(mixed)}: tasks of one name that are defined, or padded, in several ways; "
            "each sequence with them has tables of its own"
        )
    return [row | made.get(row["setup"], {}) for row in rows]


def _records(rows: Iterable[Row], segments: Mapping[str, Record]) -> dict[str, Record]:
    """Setup -> the record of a segment, for sequences that define tasks."""
    return {
        row["setup"]: segments[key]
        for row in rows
        for key in row["segments"]
        if key in segments and definitions(segments[key]["env"])
    }


def _without_tasks(record: Record, *keys: str) -> str:
    values = {key: record.get(key) for key in keys}
    return digest(values | {"env": env_options(record["env"])})
