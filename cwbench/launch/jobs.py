"""A fleet as a file, so that another process, on this machine or another, can train it.

    <root>/jobs/<id>.json   the segments' records, where to find their methods, who asked for them

Any machine that shares the results folder trains it with `cwbench train FILE`. Execution options
(device, workers, ...) are not in the file: machines differ.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cwbench.planning.plan import Plan
from cwbench.spec.config import MethodConfig, ScheduleConfig
from cwbench.spec.errors import CannotImport, UserError
from cwbench.spec.options import checked
from cwbench.spec.segment import SCHEMA, Segment, digest
from cwbench.store.files import check_inside, write_json
from cwbench.store.records import SEGMENT_KEYS, Kinds, fault, read_record
from cwbench.store.results import Store

KEYS: Kinds = {"schema": int, "methods": dict, "segments": list, "protocol": str, "command": str}
DAMAGED = "not a job file: its segments are damaged"
ENTRY_KEYS: Kinds = {key: kind for key, kind in SEGMENT_KEYS.items() if key != "id"}


@dataclass(frozen=True)
class Job:
    """One fleet, and the jobs that train its parents."""

    file: Path
    segments: tuple[Segment, ...]
    level: int  # 0 needs nothing that is not there already
    after: tuple[Path, ...]  # files of the jobs that must end before


def write_jobs(
    plan: Plan, store: Store, methods: Mapping[str, str], provenance: Mapping[str, Any]
) -> list[Job]:
    """A file for every fleet of a plan, parents first. `methods`: recorded name -> name to load."""
    folder = check_inside(store.root, store.root.resolve() / "jobs")
    folder.mkdir(parents=True, exist_ok=True)
    jobs: list[Job] = []
    home: dict[str, Job] = {}  # segment -> its job
    for fleet in plan.fleets:
        name = digest({"segments": [segment.id for segment in fleet]})
        parents = {parent.id for segment in fleet for parent in segment.parents}
        after = {home[key].file: home[key] for key in sorted(parents) if key in home}
        level = 1 + max((job.level for job in after.values()), default=-1)
        job = Job(folder / f"{name}.json", fleet, level, tuple(after))
        used = {segment.setup.method for segment in fleet}
        write_json(
            job.file,
            {
                "schema": SCHEMA,
                "methods": {name: methods[name] for name in sorted(used)},
                "segments": [segment.record() for segment in fleet],
                **provenance,
            },
        )
        jobs.append(job)
        home |= {segment.id: job for segment in fleet}
    return jobs


def read_segments(
    record: Mapping[str, Any], options_of: Callable[[str], type[MethodConfig]]
) -> list[Segment]:
    """The segments of a job file; `options_of` knows the option class of a method's name."""
    try:
        return [_segment(entry, options_of) for entry in record["segments"]]
    except CannotImport:
        raise
    except (KeyError, TypeError, AttributeError, ValueError, ArithmeticError):
        raise UserError(DAMAGED) from None


def _segment(entry: Mapping[str, Any], options_of: Callable[[str], type[MethodConfig]]) -> Segment:
    segment = Segment.from_record(entry, options_of(entry["method"]))
    if not segment.tasks or not all(isinstance(task, str) for task in segment.tasks):
        raise TypeError("tasks")
    for name, value in entry["schedule"].items():
        checked(ScheduleConfig, name, value)
    return segment


def read_job(file: Path) -> dict[str, Any]:
    """A job file's content; its segments are what records of segments are."""
    record = read_record(file, KEYS, "a job file")
    if not (record["methods"] and record["segments"]):
        raise UserError("not a job file: it names no methods or no segments")
    texts = all(isinstance(where, str) for where in record["methods"].values())
    if not texts or any(fault(entry, ENTRY_KEYS) for entry in record["segments"]):
        raise UserError(DAMAGED)
    return record
