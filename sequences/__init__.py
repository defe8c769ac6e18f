"""Task sequences: the published ones by name, and any other by its tasks or from a file."""

import fnmatch
import re
import tomllib
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from cwbench.sequences.cw import PUBLISHED
from cwbench.spec.errors import UserError, unknown
from cwbench.spec.tasks import CW_TASKS, METAWORLD_TASKS

__all__ = ["CW_TASKS", "Sequence", "expand", "get", "names", "pair"]


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
        raise UserError(f"no sequence has a name like {text!r}", "`cwbench sequences` lists them")
    return [get(name) for name in found]


def get(text: str) -> Sequence:
    """The sequence that `text` names: a published one, a pair, a single task, a list or a file."""
    if text in PUBLISHED:
        return Sequence(text, PUBLISHED[text])
    if match := re.fullmatch(r"pair-(\d+)-(\d+)", text):
        first, second = int(match[1]), int(match[2])
        if max(first, second) >= len(CW_TASKS):
            last = len(CW_TASKS) - 1
            raise UserError(
                f"{text!r} is not a pair", f"a pair takes two task ids from 0 to {last}"
            )
        return pair(first, second)
    if text.startswith("single-"):
        task = text.removeprefix("single-")
        return Sequence(text, _checked((task,)))
    if text.endswith(".toml"):
        return _from_file(Path(text))
    if "," in text or text in METAWORLD_TASKS:
        tasks = tuple(part.strip() for part in text.split(","))
        return Sequence("-".join(tasks), _checked(tasks))
    raise unknown(
        "sequence",
        text,
        [*PUBLISHED, *METAWORLD_TASKS, *(f"single-{task}" for task in METAWORLD_TASKS)],
        "A sequence is one of `cwbench sequences`, pair-I-J, single-TASK, tasks joined by commas, "
        "or a .toml file",
    )


def _checked(tasks: tuple[str, ...]) -> tuple[str, ...]:
    for task in tasks:
        if task not in METAWORLD_TASKS:
            advice = f"`cwbench tasks` lists all {len(METAWORLD_TASKS)}"
            raise unknown("task", task, METAWORLD_TASKS, advice)
    return tasks


def _from_file(path: Path) -> Sequence:
    """A file holds `tasks = ["push", ...]` and, if wanted, `name = "..."`."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"sequence file {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"sequence file {path}: {error}") from None
    if extra := sorted(set(content) - {"name", "tasks"}):
        raise UserError(f"sequence file {path}: unknown keys {extra}; allowed: name, tasks")
    tasks = content.get("tasks")
    if not isinstance(tasks, list) or not tasks or not all(isinstance(t, str) for t in tasks):
        raise UserError(f"sequence file {path}: `tasks` must be a list of one or more task names")
    name = content.get("name", path.stem)
    if not isinstance(name, str) or not re.fullmatch(r"[\w.+-]+", name):
        raise UserError(f"sequence file {path}: `name` may hold letters, digits and . + - _ only")
    if name in PUBLISHED and tuple(tasks) != PUBLISHED[name]:
        raise UserError(f"sequence file {path}: {name!r} is the name of a published sequence")
    return Sequence(name, _checked(tuple(tasks)))
