"""Whether a results folder from somewhere else can go on the board. Runs none of its code."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from cwbench.reports.analysis.study import Study
from cwbench.spec.config import PROTOCOLS, ScheduleConfig
from cwbench.spec.options import completed
from cwbench.spec.protocol import protocol_title
from cwbench.spec.segment import RECORD_KEYS, recorded_id
from cwbench.spec.source import short_hash
from cwbench.spec.text import counted
from cwbench.store import files
from cwbench.store.integrity import damages
from cwbench.store.results import SegmentFolder, read_segments

OF_SEGMENT = re.compile(r"segments/([^/:]+)(?:/|: )(.*)")  # a fault, with the segment's folder
ENDED = ("done", "diverged")  # diverged runs are in no mean, and noted
NAMED = 3  # segments with the same fault, at most


def faults(study: Study, results: Path) -> list[str]:
    """Everything that speaks against showing these results, one line each; empty if nothing.

    The study's notes do not: they are shown with the results.
    """
    found = [problem for problem in study.problems if problem not in study.notes]
    for record in read_segments(results, []):  # the study lists what cannot be read
        name = f"segments/{record['folder']}"
        found += [f"{name}: {fault}" for fault in _record_faults(record, results)]
    damaged = [f"{one.file}: {one.reason}" for one in damages(results, _check_tables)]
    return _grouped([*found, *damaged, *_protocol_faults(study), *_row_faults(study)])


def _grouped(faults: Iterable[str]) -> list[str]:
    """Every fault once, with the segments that have it."""
    found: dict[str, dict[str, str]] = {}  # fault -> segment -> line
    for line in faults:
        segment, fault = match.groups() if (match := OF_SEGMENT.fullmatch(line)) else ("", line)
        found.setdefault(fault, {})[segment] = line
    lines = []
    for fault, segments in found.items():
        first = ", ".join(list(segments)[:NAMED]) + ", ..." * (len(segments) > NAMED)
        several = f"{fault} ({counted(len(segments), 'segment')}: {first})"
        lines.append(several if len(segments) > 1 else next(iter(segments.values())))
    return lines


def _check_tables(folder: SegmentFolder) -> None:
    """A contribution needs no weights; what is there must be what was written."""
    for name, checksum in folder.checksums().items():
        if (folder.path / name).exists():
            files.check(folder.path / name, checksum)


def _record_faults(record: Mapping[str, Any], results: Path) -> Iterator[str]:
    if missing := [key for key in RECORD_KEYS if key not in record]:
        yield f"the record has no {', '.join(missing)}"
        return
    if recorded_id(record) != record["id"]:
        yield "the record was changed: its id is another one; give it as training wrote it"
    if record["status"]["state"] not in ENDED:
        state = record["status"]["state"]
        yield f"not finished ({state}); the command that made the runs continues them"
    if not record.get("versions", {}).get("commit"):
        yield "the record names no commit or source of cwbench; train it with this version"
    yield from _source_faults(record, results)


def _protocol_faults(study: Study) -> Iterator[str]:
    """A user's protocol stands for one schedule. Titles name what changes one of the package's."""
    schedules: dict[str, dict[str, Any]] = {}  # of users' protocols, as the first row has it
    for group in study.groups:
        row, name = f"{group.label} on {group.sequence}", group.protocol.name
        if name in PROTOCOLS:
            continue
        if (title := protocol_title(name)) in (name, *PROTOCOLS):
            yield f"{row}: unknown protocol {name!r}"
            continue
        found = completed(ScheduleConfig, group.protocol.schedule)
        for key, value in schedules.setdefault(name, found).items():
            if found[key] != value:
                yield (
                    f"{row}: {key} is {found[key]}, others of protocol {title} have {value}; "
                    "give one of them only (`cwbench merge --experiment`)"
                )


def _source_faults(record: Mapping[str, Any], results: Path) -> Iterator[str]:
    """A method from outside the package must be there to be read."""
    if not (source := record["source"]):
        return
    file = results / "sources" / f"{source}.py"
    if not file.is_file() or file.is_symlink():
        yield f"method {record['method']} is not in sources/{source}.py"
    elif short_hash(file.read_bytes()) != source:
        yield f"sources/{source}.py is not the code that was trained"


def _row_faults(study: Study) -> Iterator[str]:
    """The seeds of a row must share all settings, and have ended.

    Versions of a method have rows of their own, and titles that name the code.
    """
    setups: dict[tuple[str, str, str, str], set[str]] = defaultdict(set)
    for group in study.groups:
        row = group.protocol.key, group.sequence, group.label, group.version
        setups[row].add(group.setup)
        if late := [run.seed for run in group.runs if run.state not in ENDED]:
            yield f"{group.label} on {group.sequence}: seeds {late} are not finished"
    for (_, sequence, label, _), found in setups.items():
        if len(found) > 1:
            yield f"{label} on {sequence}: {len(found)} different settings under one label"
