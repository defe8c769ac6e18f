"""What the segments of a results folder are doing, from their records, states and claims."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cwbench.store import claims
from cwbench.store.records import created
from cwbench.store.results import Store, read_experiments, read_segments

# `stopped` began and no process trains it now; `waiting` has not begun.
UNFINISHED = ("running", "waiting", "stopped")
SHOWN_STATES = ("done", *UNFINISHED, "failed", "diverged", "damaged")


@dataclass(frozen=True)
class SegmentStatus:
    id: str
    method: str  # with its options
    protocol: str
    seed: int
    position: int  # 0 for the first task
    task: str
    parent: str | None
    steps: int
    state: str = "waiting"
    folder: str = ""  # empty where nothing is on disk
    step: int = 0
    message: str = ""  # why it failed
    error: Mapping[str, Any] | None = None  # type, message, file, line, traceback
    owner: str = ""  # host:pid
    since: float | None = None  # when its owner began
    steps_per_second: float | None = None
    waits_for: str | None = None  # a parent that is not done
    retraining: Sequence[int] | None = None  # updates at the task's end: made, asked for


@dataclass(frozen=True)
class ExperimentStatus:
    name: str
    command: str
    created: float
    runs: int
    segments: tuple[SegmentStatus, ...]

    @property
    def counts(self) -> dict[str, int]:
        found = Counter(segment.state for segment in self.segments)
        return {state: found[state] for state in SHOWN_STATES}

    @property
    def step(self) -> int:
        return sum(segment.step for segment in self.segments)

    @property
    def steps(self) -> int:
        return sum(segment.steps for segment in self.segments)


def read_status(root: Path) -> tuple[list[ExperimentStatus], list[str]]:
    """Every recorded experiment, oldest first, and what could not be read."""
    problems: list[str] = []
    records = {record["id"]: record for record in read_segments(root, problems)}
    experiments = [
        ExperimentStatus(
            record["name"],
            str(record.get("command", "")),
            created(record),
            len(record["runs"]),
            tuple(
                {s.id: s for run in record["runs"] for s in _of_run(run, records, root)}.values()
            ),
        )
        for record in read_experiments(root, problems)
    ]
    return sorted(experiments, key=lambda one: one.created), problems


def _of_run(
    run: Mapping[str, Any], records: Mapping[str, Mapping[str, Any]], root: Path
) -> Iterator[SegmentStatus]:
    parent: SegmentStatus | None = None
    last = len(run["tasks"]) - 1
    joint = len(run["segments"]) < len(run["tasks"])
    for index, (key, steps) in enumerate(zip(run["segments"], run["steps"], strict=True)):
        position = last if joint else index
        status = SegmentStatus(
            key,
            run["label"],
            run["protocol"],
            run["seed"],
            position,
            run["tasks"][position],
            parent.id if parent else None,
            steps,
        )
        if key in records:
            status = _on_disk(status, records[key], root)
        if status.state == "waiting" and parent and parent.state != "done":
            status = replace(status, waits_for=parent.id)
        parent = status
        yield status


def _on_disk(status: SegmentStatus, record: Mapping[str, Any], root: Path) -> SegmentStatus:
    folder = Store(root).named(record["folder"])
    owner = claims.owner(folder)
    found = folder.status()  # after the claim: an owner that has just finished leaves `done`
    step, state = int(found.get("step", 0)), shown_state(found, owner)
    since = found.get("started") if state == "running" else None
    retraining = found.get("retraining") if state == "running" else None
    return replace(
        status,
        state=state,
        folder=record["folder"],
        step=step,
        message=str(found.get("message", "")),
        error=found.get("error"),
        owner=owner if state == "running" else "",
        since=since,
        steps_per_second=steps_per_second(found) if state == "running" else None,
        retraining=retraining,
    )


def shown_state(status: Mapping[str, Any], owner: str) -> str:
    """The word for a segment's state, which its file alone does not tell: its process may be gone.

    One of SHOWN_STATES; `owner` is the living process at work on it, if there is one.
    """
    state = str(status["state"])
    if state not in ("pending", "running"):
        return state
    if owner:
        return "running"
    began = status.get("step", 0) or state == "running" or status.get("message")
    return "stopped" if began else "waiting"


def steps_per_second(status: Mapping[str, Any]) -> float | None:
    """Of a segment in training, from when its process began to its last record of steps.

    None before its first steps, and at the task's end.
    """
    if status["state"] != "running" or "started" not in status or status.get("retraining"):
        return None
    steps = status.get("step", 0) - status.get("started_step", 0)
    seconds = status.get("updated", 0) - status["started"]
    return float(steps / seconds) if steps > 0 and seconds > 0 else None
