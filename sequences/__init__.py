"""Task sequences: the published ones by name, and any other by its tasks or from a file."""

import difflib
import fnmatch
import re
import tomllib
from collections.abc import Collection
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from cwbench.sequences.cw import PUBLISHED
from cwbench.spec.tasks import CW_TASKS, METAWORLD_TASKS

__all__ = ["CW_TASKS", "Sequence", "closest", "expand", "get", "names", "pair"]


@dataclass(frozen=True)
class Sequence:
    """Tasks to be learned one after another. A task may come twice: each position is its own."""

    name: str
    tasks: tuple[str, ...]


def names() -> list[str]:
    """The named sequences, without the families `pair-I-J` and `single-TASK`."""
    return list(PUBLISHED)


def pair(first: int, second: int) -> Sequence:
    return Sequence(f"pair-{first}-{second}", (CW_TASKS[first], CW_TASKS[second]))


def expand(text: str) -> list[Sequence]:
    """The sequences that `text` names; `*` stands for anything in a name: `cw3-*`, `pair-5-*`."""
    if "*" not in text:
        return [get(text)]
    ids = range(len(CW_TASKS))
    pairs = [f"pair-{first}-{second}" for first, second in product(ids, repeat=2)]
    every = [*PUBLISHED, *pairs, *(f"single-{task}" for task in CW_TASKS)]
    if not (found := fnmatch.filter(every, text)):
        raise ValueError(f"no sequence has a name like {text!r}; `cwbench sequences` lists them")
    return [get(name) for name in found]


def closest(word: str, known: Collection[str]) -> str:
    """`; did you mean 'x'?` or nothing, to end an error message with."""
    match = difflib.get_close_matches(word, list(known), n=1)
    return f"; did you mean {match[0]!r}?" if match else ""


def get(text: str) -> Sequence:
    """The sequence that `text` names: a published one, a pair, a single task, a list or a file."""
    if text in PUBLISHED:
        return Sequence(text, PUBLISHED[text])
    if match := re.fullmatch(r"pair-(\d+)-(\d+)", text):
        first, second = int(match[1]), int(match[2])
        if max(first, second) >= len(CW_TASKS):
            raise ValueError(f"{text!r}: a pair takes two task ids from 0 to {len(CW_TASKS) - 1}")
        return pair(first, second)
    if text.startswith("single-"):
        task = text.removeprefix("single-")
        return Sequence(text, _checked((task,)))
    if text.endswith(".toml"):
        return _from_file(Path(text))
    if "," in text or text in METAWORLD_TASKS:
        tasks = tuple(part.strip() for part in text.split(","))
        return Sequence("-".join(tasks), _checked(tasks))
    hint = closest(
        text, [*PUBLISHED, *METAWORLD_TASKS, *(f"single-{task}" for task in METAWORLD_TASKS)]
    )
    raise ValueError(
        f"unknown sequence {text!r}{hint} A sequence is one of `cwbench sequences`, pair-I-J, "
        "single-TASK, tasks joined by commas, or a .toml file"
    )


def _checked(tasks: tuple[str, ...]) -> tuple[str, ...]:
    for task in tasks:
        if task not in METAWORLD_TASKS:
            hint, count = closest(task, METAWORLD_TASKS), len(METAWORLD_TASKS)
            raise ValueError(f"unknown task {task!r}{hint} `cwbench tasks` lists all {count}")
    return tasks


def _from_file(path: Path) -> Sequence:
    """A file holds `tasks = ["push", ...]` and, if wanted, `name = "..."`."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"sequence file {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"sequence file {path}: {error}") from None
    if unknown := sorted(set(content) - {"name", "tasks"}):
        raise ValueError(f"sequence file {path}: unknown keys {unknown}; allowed: name, tasks")
    tasks = content.get("tasks")
    if not isinstance(tasks, list) or not tasks or not all(isinstance(t, str) for t in tasks):
        raise ValueError(f"sequence file {path}: `tasks` must be a list of one or more task names")
    name = content.get("name", path.stem)
    if not isinstance(name, str) or not re.fullmatch(r"[\w.+-]+", name):
        raise ValueError(f"sequence file {path}: `name` may hold letters, digits and . + - _ only")
    if name in PUBLISHED and tuple(tasks) != PUBLISHED[name]:
        raise ValueError(f"sequence file {path}: {name!r} is the name of a published sequence")
    return Sequence(name, _checked(tuple(tasks)))
