"""Records may name code. It runs only if the user named it, or trusts the record."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from cwbench.sequences.gymnasium import PHYSICS
from cwbench.spec.config import EnvConfig
from cwbench.spec.errors import UserError


def named_code(method: str, env: Mapping[str, Any]) -> Iterator[str]:
    """What training with a recorded method and environment would import besides this package."""
    if ".py" in method:
        yield method
    try:
        for task in env.get("tasks", ()):
            yield from _code_of_task(task)
    except (KeyError, TypeError, AttributeError):
        raise UserError("a record of an environment is damaged", "look at its `tasks`") from None


def _code_of_task(task: Mapping[str, Any]) -> Iterator[str]:
    if "callable" in task:
        yield task["callable"]
    if ":" in str(task.get("id", "")):
        yield task["id"]
    for wrapper in task.get("wrappers", ()):
        name = wrapper["wrapper"] if isinstance(wrapper, dict) else wrapper
        if name != PHYSICS:
            yield name


def edited_task(recorded: Mapping[str, Any], env: EnvConfig) -> Mapping[str, Any] | None:
    """The record of the first task whose function or class here is not the recorded code."""
    here = {task["name"]: task for task in env.record().get("tasks", ())}
    tasks: Iterable[Mapping[str, Any]] = recorded.get("tasks", ())
    edited = (t for t in tasks if t.get("source") != here[t["name"]].get("source"))
    return next(edited, None)


def check_trust(
    names: Iterable[str], trusted: bool, say: Callable[[str], None] = lambda line: None
) -> None:
    """UserError with one line that says what would run, unless it is trusted."""
    distinct = ", ".join(dict.fromkeys(map(str, names)))
    if distinct and not trusted:
        raise UserError(f"this would run code that a record names: {distinct}",
                        "give --trust (trust=True in Python) if you know that code")  # fmt: skip
    if distinct:
        say(f"running code that a record names: {distinct}")
