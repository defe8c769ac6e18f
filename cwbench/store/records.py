"""What the records of a results folder must hold, and how a damaged one is listed."""

import contextlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

from cwbench.spec.errors import UserError
from cwbench.spec.files import read_text
from cwbench.spec.segment import SCHEMA
from cwbench.store.files import Damaged, Unreadable, Unusable

Kinds = Mapping[str, type | tuple[type, ...]]

NUMBER = (int, float)
STATUS_KEYS: Kinds = {"state": str}
STATUS_TYPES: Kinds = {
    "step": int,
    "started_step": int,
    "started": NUMBER,
    "updated": NUMBER,
    "seconds": NUMBER,
    "message": str,
    "checksums": dict,
    "sessions": list,
    "resumed_with": list,
    "resources": dict,
    "retraining": list,
}
MOST_STEPS = 10**12  # of a task; more than any record has
_GROUPS = ("method_options", "sac", "network", "env", "schedule")
SEGMENT_KEYS: Kinds = dict.fromkeys(_GROUPS, dict) | {
    "schema": int,
    "id": str,
    "method": str,
    "seed": int,
    "tasks": list,
    "joint": bool,
}
# How a segment was trained. Older records, or those of other programs, may lack some of it.
SEGMENT_TYPES: Kinds = dict.fromkeys(("versions", "machine", "device", "preset"), dict) | {
    "protocol": str,
    "command": str,
    "created": NUMBER,
    "source": (str, type(None)),
    "parent": (str, type(None)),
    "expert": str,
}
SCHEDULE_KEYS: Kinds = dict.fromkeys(("steps_per_task", "eval_every"), int)
EXPERIMENT_KEYS: Kinds = {"schema": int, "name": str, "runs": list}
RUN_KEYS: Kinds = dict.fromkeys(("sequence", "method", "label", "setup", "protocol"), str) | {
    "seed": int,
    "tasks": list,
    "segments": list,
    "steps": list,
}


NONE: Kinds = MappingProxyType({})


def fault(record: Any, keys: Kinds, optional: Kinds = NONE) -> str:
    """What is wrong with a record that should hold these keys; empty if nothing is.

    A key that is optional must hold what it should where it is there.
    """
    if not isinstance(record, dict):
        return f"expected a record, found {type(record).__name__}"
    if missing := [key for key in keys if key not in record]:
        return f"without {', '.join(missing)}"
    for key, kind in (*keys.items(), *optional.items()):
        if key in record and not isinstance(record[key], kind):
            return f"{key} is {record[key]!r:.40}"
    return ""


def checked(record: Any, keys: Kinds, where: Path, optional: Kinds = NONE) -> dict[str, Any]:
    """The record, if there is no fault in it and no later version wrote it."""
    if wrong := fault(record, keys, optional):
        raise Damaged(where, wrong)
    found: dict[str, Any] = record
    if found.get("schema", SCHEMA) > SCHEMA:
        raise UserError(f"{where}: schema {found['schema']} is newer than {SCHEMA}")
    return found


def read_record(file: Path, keys: Kinds, what: str) -> dict[str, Any]:
    """The record in a file that a user names; UserError if the file is not `what`."""
    try:
        record: Any = json.loads(read_text(file))
    except (json.JSONDecodeError, RecursionError):
        record = None
    if fault(record, keys):
        raise UserError(f"not {what}")
    if record["schema"] > SCHEMA:
        raise UserError("written by a newer cwbench", "upgrade")
    return dict(record)


def checked_segment(record: Any, where: Path) -> dict[str, Any]:
    """The record of a segment, if reports can read all of it."""
    found = checked(record, SEGMENT_KEYS, where, SEGMENT_TYPES)
    schedule = checked(found["schedule"], SCHEDULE_KEYS, where)
    for key in SCHEDULE_KEYS:
        if not 0 < schedule[key] < MOST_STEPS:
            raise Damaged(where, f"{key} is {schedule[key]!r:.40}")
    if not all(isinstance(task, str) for task in found["tasks"]):
        raise Damaged(where, f"tasks is {found['tasks']!r:.40}")
    return found


def created(experiment: Mapping[str, Any]) -> float:
    """When it was asked for; 0 where the file does not say."""
    try:
        return float(experiment.get("created", 0))
    except (TypeError, ValueError, OverflowError):
        return 0.0


def check_run(run: Any, file: Path) -> None:
    checked(run, RUN_KEYS, file)
    for key, kind in (("tasks", str), ("segments", str), ("steps", int)):
        if not run[key] or not all(isinstance(item, kind) for item in run[key]):
            raise Damaged(file, f"{key} is {run[key]!r:.40}")
    if len(run["segments"]) != len(run["steps"]) or len(run["segments"]) > len(run["tasks"]):
        raise Damaged(file, f"{len(run['segments'])} segments for {len(run['tasks'])} tasks")


class Problem(str):
    """A line that says what is wrong with a file of a results folder."""

    file: str  # inside the folder
    reason: str
    denied: bool  # it may be intact: this user has no permission to read it

    def __new__(cls, file: str, reason: str, denied: bool = False) -> "Problem":
        problem = super().__new__(cls, f"{file}: {reason}")
        problem.file, problem.reason, problem.denied = file, reason, denied
        return problem

    @property
    def segment(self) -> str:
        """The segment's folder that the file is in; empty for other files."""
        parts = Path(self.file).parts
        return parts[1] if parts[:1] == ("segments",) and len(parts) > 1 else ""

    def __getnewargs__(self) -> tuple[str, str, bool]:  # type: ignore[override]
        return self.file, self.reason, self.denied  # to be sent to another process


class Problems(Protocol):
    """A list of them, or of lines of any kind."""

    def append(self, problem: Problem, /) -> None: ...


@contextlib.contextmanager
def listing(root: Path, problems: Problems, file: Path) -> Iterator[None]:
    """List what cannot be read inside the block, and continue after it.

    `file` is what the block reads, for errors that do not say which file they are about.
    """
    try:
        yield
    except (UserError, OSError) as error:
        if isinstance(error, Unusable):
            file, reason = error.path, error.reason
        else:
            reason = str(error).removeprefix(f"{file}: ").removeprefix(f"{file} ")
        where = file.relative_to(root) if file.is_relative_to(root) else file
        denied = isinstance(error, Unreadable | PermissionError)
        problems.append(Problem(str(where), reason, denied))
