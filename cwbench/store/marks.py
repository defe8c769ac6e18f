"""How runs that share a label or a sequence's name are told apart, wherever they are shown."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from cwbench.spec.segment import digest
from cwbench.store.runs import Runs, records_of

Row = Mapping[Any, Any]


def mark(fingerprint: str) -> str:
    """The start of a fingerprint, which stands for it in titles."""
    return fingerprint[:4]


def sequence_names(rows: Iterable[Row]) -> dict[str, dict[tuple[str, ...], str]]:
    """Sequence -> tasks -> name, of those with different tasks, as of a file that was edited."""
    names: dict[str, dict[tuple[str, ...], str]] = defaultdict(dict)
    for row in rows:
        name = f"{row['sequence']}+{mark(digest(row['tasks']))}"
        names[row["sequence"]][row["tasks"]] = name
    return {sequence: found for sequence, found in names.items() if len(found) > 1}


def sources(rows: Iterable[Row], segments: Mapping[str, Row]) -> dict[str, dict[str, str]]:
    """Method -> setup -> its code's name in `sources/`, of methods that were edited between runs.

    Empty for code that is built in.
    """
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for row in rows:
        for key in row["segments"]:
            if key in segments:
                found[row["method"]][row["setup"]] = segments[key]["source"] or ""
    return {method: code for method, code in found.items() if len({*code.values()}) > 1}


def shown_names(tables: Runs) -> dict[str, tuple[str, str]]:
    """Run -> names of its sequence and its setting that no other tasks or settings have.

    As in reports: a method that was edited has the start of its code's name, and what still has
    one label, as settings that differ in the schedule, that of its setup.
    """
    rows = tables.runs.to_dict("records")
    edited = sequence_names(rows)
    versions = sources(rows, {row["id"]: row for row in records_of(tables.segments)})
    names: dict[str, tuple[str, str]] = {}
    setups: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for row in rows:
        sequence = edited.get(row["sequence"], {}).get(row["tasks"], row["sequence"])
        version = versions.get(row["method"], {}).get(row["setup"], "")
        names[row["run"]] = sequence, row["label"] + (f" ({mark(version)})" if version else "")
        setups[*names[row["run"]], row["protocol"]].add(row["setup"])
    for row in rows:
        sequence, label = names[row["run"]]
        if len(setups[sequence, label, row["protocol"]]) > 1:
            names[row["run"]] = sequence, f"{label} ({mark(row['setup'])})"
    return names
