"""Text for people."""

import re
import shlex
from collections.abc import Sequence


def counted(number: int, one: str, many: str = "") -> str:
    """`1 run`, `3 runs`, `1,000 runs`; `many` where it is more than an s."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def shown(value: object) -> str:
    """Any object in a message: on one line, and not all of a long one."""
    return " ".join(repr(value).split())[:60]


def as_command(*words: object) -> str:
    """A command of cwbench in a message, to be copied into a shell: with quotes where needed."""
    return f"`{shlex.join(['cwbench', *map(str, words)])}`"


def listed(words: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def file_name(text: str) -> str:
    """Any name as part of a file's: `recall (lambda_=1.0)` -> `recall-lambda_-1.0`."""
    return re.sub(r"[^\w.+-]+", "-", text).strip("-.")


def at_task_end(updates: Sequence[int]) -> str:
    """How many updates of how many a method has made there."""
    made, asked = updates
    return f"at the task's end, {made:,} of {asked:,} updates"


def duration(seconds: float) -> str:
    """A length of time in at most two units: 45 s, 3 min 20 s, 5 h 12 min, 2 d 3 h."""
    units = (("d", 86400), ("h", 3600), ("min", 60), ("s", 1))
    left = max(0, round(seconds))
    parts: list[str] = []
    for name, size in units:
        count, left = divmod(left, size)
        if count or (name == "s" and not parts):
            parts.append(f"{count} {name}")
    return " ".join(parts[:2])
