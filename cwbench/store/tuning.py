"""Which options were chosen on which sequences: RESULTS/tuning/*.json of `cwbench tune`."""

import math
from collections.abc import Mapping
from pathlib import Path
from types import NoneType
from typing import Any

from cwbench.spec.config import GROUPS, MethodConfig, NetworkConfig
from cwbench.spec.errors import UserError
from cwbench.spec.options import completed
from cwbench.spec.segment import SCHEMA, digest
from cwbench.store import files
from cwbench.store.files import check_inside
from cwbench.store.records import NUMBER, Kinds, fault, listing, read_record

KEYS: Kinds = {"schema": int, "method": str, "options": dict, "on": list, "settings": list}
# Of records that need them; those of older versions have none.
OPTIONAL: Kinds = {"variant": str, "left_out": dict}
# One run has no interval: null, and NaN in memory.
END = (*NUMBER, NoneType)
SETTING_KEYS: Kinds = {"options": dict, "score": NUMBER, "low": END, "high": END, "runs": int}


def write(root: Path, record: Mapping[str, Any]) -> Path:
    """Keep a record in a results folder; its name says the method."""
    folder = check_inside(root, root / "tuning")
    folder.mkdir(parents=True, exist_ok=True)
    named = ("method", "variant", "options", "on", "settings")
    key = digest({name: record[name] for name in named if name in record})
    file = folder / f"{record['method'].replace('/', '_')}-{key}.json"
    settings = [
        {key: None if value != value else value for key, value in one.items()}
        for one in record["settings"]
    ]
    files.write_json(file, {"schema": SCHEMA, **record, "settings": settings})
    files.sync(folder)
    return file


def read(file: Path) -> dict[str, Any]:
    """A record, checked; UserError if the file is something else."""
    record = read_record(file, KEYS, what := "a file of `cwbench tune`")
    if fault(record, {}, OPTIONAL):
        raise UserError(f"not {what}")
    for one in record["settings"]:
        if fault(one, SETTING_KEYS):
            raise UserError(f"not {what}")
        one |= {end: math.nan for end in ("low", "high") if one[end] is None}
    return record


def read_all(root: Path, problems: list[str]) -> list[dict[str, Any]]:
    """The records of a results folder; files that cannot be read become problems."""
    records: list[Path] = []
    with listing(root, problems, root / "tuning"):
        records = files.entries(root / "tuning", "*.json")
    found = []
    for file in records:
        with listing(root, problems, file):
            found.append(read(check_inside(root, file)))
    return found


def matches(record: Mapping[str, Any], segment: Mapping[str, Any]) -> bool:
    """Whether a segment's record has the method and the options that were chosen.

    What all settings shared is no part of the choice.
    """
    tried = {name for setting in record["settings"] for name in setting["options"]}
    chosen = {name: value for name, value in record["options"].items() if name in tried}
    values = dict(record.get("left_out", {}))  # what a segment means that does not name them
    if "hidden" in chosen:  # records have layers of equal size as width and layers
        network = NetworkConfig(hidden=chosen["hidden"])
        chosen |= {name: getattr(network, name) for name in ("hidden", "width", "layers")}
    for name, group in {**GROUPS, "method_options": MethodConfig}.items():
        values |= completed(group, segment[name])
    return segment["method"] == record["method"] and all(
        name in values and values[name] == value for name, value in chosen.items()
    )
