"""Task sequences: named ones, and any other by its tasks or from a file."""

import fnmatch
import re
from itertools import product
from pathlib import Path

from cwbench.sequences import cw, files, gymnasium, metaworld, pointmass
from cwbench.sequences.sequence import Sequence
from cwbench.spec.config import ENV_CONFIGS
from cwbench.spec.errors import UserError, located, unknown
from cwbench.spec.tasks import CW_TASKS, METAWORLD_TASKS, Task, valid_name

__all__ = [
    "CW_TASKS",
    "Sequence",
    "checked",
    "expand",
    "get",
    "is_task",
    "names",
    "of_tasks",
    "pair",
]

NAMED: dict[str, Sequence] = {
    sequence.name: sequence
    for module in (cw, metaworld, pointmass, gymnasium)
    for sequence in module.SEQUENCES
}
WHOLE_SUITES = tuple(Sequence("", one.task_names, name) for name, one in ENV_CONFIGS.items())
# Where tasks of suites other than Meta-World are found.
OTHER_TASKS: dict[str, Sequence] = {
    task: sequence
    for sequence in (*WHOLE_SUITES, *NAMED.values())
    if sequence.suite != "metaworld"
    for task in sequence.tasks
}

# Names that say what a sequence is: reports give them their own tables and references.
FAMILIES = r"(cw3|cw6|orders-cw10|pair(-.+)?-\d+)-\d+|single-.+"


def names() -> list[str]:
    """The named sequences, without families such as `pair-I-J` and `single-TASK`."""
    return list(NAMED)


def pair(first: int, second: int, of: Sequence = NAMED["cw10"]) -> Sequence:
    """Two tasks of a sequence, by number. All definitions stay: its pairs have one setup."""
    tasks = of.distinct
    name = f"pair-{first}-{second}" if tasks == CW_TASKS else f"pair-{of.name}-{first}-{second}"
    return Sequence(name, (tasks[first], tasks[second]), of.suite, of.definitions)


def expand(text: str) -> list[Sequence]:
    """The sequences that `text` names; `*` stands for anything in a name: `cw3-*`, `pair-5-*`."""
    if "*" not in text:
        return [get(text)]
    ids = range(len(CW_TASKS))
    pairs = [f"pair-{first}-{second}" for first, second in product(ids, repeat=2)]
    every = [*NAMED, *pairs, *(f"single-{task}" for task in CW_TASKS)]
    if not (found := fnmatch.filter(every, text)):
        raise UserError(f"no sequence has a name like {text!r}; `cwbench sequences` lists them")
    return [get(name) for name in found]


def get(text: str) -> Sequence:
    """The sequence that `text` names: a named one, a pair, a single task, a list or a file."""
    if text in NAMED:
        return NAMED[text]
    if match := re.fullmatch(r"pair-(?:(.+)-)?(\d+)-(\d+)", text):
        of, numbers = get(match[1] or "cw10"), (int(match[2]), int(match[3]))
        if max(numbers) >= (count := len(of.distinct)):
            raise UserError(f"{text!r}: a pair takes two task ids from 0 to {count - 1}")
        return pair(*numbers, of)
    if match := re.fullmatch(r"orders-cw10-(\d+)", text):
        return cw.random_order(int(match[1]))
    if text.startswith("single-") and "," not in text:
        return of_tasks(text, (text.removeprefix("single-"),))
    if text.endswith(".toml"):
        return _from_file(Path(text))
    if "," in text or is_task(text):
        tasks = tuple(part.strip() for part in text.split(","))
        return of_tasks("-".join(tasks), tasks)
    known = [*METAWORLD_TASKS, *OTHER_TASKS]
    raise unknown(
        "sequence",
        text,
        [*NAMED, *known, *(f"single-{task}" for task in known)],
        "a sequence is one of `cwbench sequences`, pair-I-J, single-TASK, tasks joined by commas, "
        "or a .toml file",
    )


def is_task(name: str) -> bool:
    """Whether a name is that of a task, and of no sequence."""
    return name not in NAMED and (name in METAWORLD_TASKS or name in OTHER_TASKS)


def of_tasks(name: str, tasks: tuple[str, ...]) -> Sequence:
    """Tasks of one suite, each known by its name."""
    homes = {_suite(task) for task in tasks}
    if len(homes) > 1:
        raise UserError(f"{name!r}: all tasks must be of one suite, not {sorted(homes)}")
    if homes == {"metaworld"}:
        return Sequence(name, tasks)
    definitions = {one.name: one for task in tasks for one in OTHER_TASKS[task].definitions}
    used = tuple(definitions[task] for task in dict.fromkeys(tasks) if definitions)
    return Sequence(name, tasks, homes.pop(), used)


def _suite(task: str) -> str:
    if task in METAWORLD_TASKS:
        return "metaworld"
    if task in NAMED or re.fullmatch(FAMILIES, task):
        raise UserError(f"{task!r} is a sequence, not a task", "give `--seq` once for each")
    if task not in OTHER_TASKS:
        known = [*METAWORLD_TASKS, *OTHER_TASKS]
        raise unknown("task", task, known, f"`cwbench tasks` lists all {len(known)}")
    return OTHER_TASKS[task].suite


def _from_file(path: Path) -> Sequence:
    """What a file describes, under a name that no other sequence has."""
    with located(f"sequence file {path}"):
        return checked(files.read(path))


def checked(sequence: Sequence) -> Sequence:
    """A user's sequence with its suite and its tasks' definitions; UserError if it is invalid.

    An empty suite means that of the tasks.
    """
    tasks = sequence.tasks
    if not isinstance(tasks, tuple | list) or not tasks or set(map(type, tasks)) != {str}:
        raise UserError("`tasks` must be a list of one or more task names")
    name = valid_name(sequence.name, "a sequence's `name`")
    made = _defined(sequence) if sequence.definitions else of_tasks(name, tuple(tasks))
    if sequence.suite not in ("", made.suite):
        raise UserError(f"its tasks are of the suite {made.suite}, not {sequence.suite}")
    if NAMED.get(name, made) != made:
        raise UserError(f"{name!r} is the name of a published sequence", "choose another `name`")
    if name not in NAMED and re.fullmatch(FAMILIES, name) and not _is_found(made):
        raise UserError(
            f"{name!r} is the name of another kind of sequence", "choose another `name`"
        )
    return made


def _defined(sequence: Sequence) -> Sequence:
    """A sequence whose tasks have definitions, each its own."""
    found: dict[str, Task] = {}
    for task in sequence.definitions:
        if not isinstance(task, Task):
            raise UserError(f"{task!r} is not a definition", "give objects of cwbench.Task")
        if found.setdefault(task.name, task) != task:
            raise UserError(f"two tasks are called {task.name!r}", "give each a name of its own")
    if missing := [task for task in sequence.tasks if task not in found]:
        raise UserError(f"the task {missing[0]!r} has no definition", "add it to `definitions`")
    return Sequence(sequence.name, tuple(sequence.tasks), "gymnasium", tuple(found.values()))


def _is_found(sequence: Sequence) -> bool:
    """Whether its name leads to this very sequence."""
    try:
        return get(sequence.name) == sequence
    except UserError:
        return False
