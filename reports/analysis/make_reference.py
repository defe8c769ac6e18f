"""Make a reference set of the single-task runs in a results folder (format: `reference.py`).

python -m cwbench.reports.analysis.make_reference RESULTS NAME FOLDER
"""

import gzip
import re
import sys
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from cwbench.reports.analysis import names
from cwbench.spec.errors import UserError
from cwbench.spec.statistics import MORE_SUCCESSES
from cwbench.store.files import checked_name, read_json, replacing, write_json
from cwbench.store.runs import Runs, load_runs, records_of

COLUMNS = ["task", "seed", "step", "episodes", "successes"]
# Of a segment's record: what decides its numbers, and how they came about. Not which host it was.
KEPT = ("protocol", "method", "method_options", "sac", "network", "env", "schedule")
HISTORY = ("versions", "device", "command")


def write_reference(results: Path, name: str, folder: Path) -> Path:
    """NAME.json and NAME.csv.gz in the folder: every evaluation of every finished run.

    A set that exists already gets the runs it does not have.
    """
    checked_name(name, "set")
    if not results.is_dir():
        raise UserError(f"no results folder at {str(results)!r}", "give the one of your runs")
    loaded = load_runs(results)
    runs = loaded.runs
    single = runs["sequence"].str.startswith("single-")
    plain = runs["method"].map(names.method_key) == "finetuning"
    chosen = runs[single & plain & (runs["state"] == "done")]
    if chosen.empty:
        raise UserError(f"{results} has no finished fine-tuning run of a single task")
    rows = loaded.evals.rename(columns={"eval_task": "task"})
    rows = rows.merge(chosen[["run", "seed"]], on="run")
    counted = [name for name in MORE_SUCCESSES if rows[name].notna().all()]
    rows = rows[[*COLUMNS, *counted]].astype(dict.fromkeys(counted, int))
    record = _record(loaded, rows)
    file, record_file = folder / f"{name}.csv.gz", folder / f"{name}.json"
    if record_file.exists():
        rows, record = _extended(_known(file), read_json(record_file), rows, record)
    folder.mkdir(parents=True, exist_ok=True)
    ordered = rows.sort_values(["task", "seed", "step"])
    # mtime 0 and no temporary name: the same runs give the same bytes.
    with (
        replacing(file) as temporary,
        temporary.open("wb") as stream,
        gzip.GzipFile(file.name, "wb", fileobj=stream, mtime=0) as packed,
    ):
        ordered.to_csv(packed, index=False)
    write_json(record_file, record)
    return file


def _known(file: Path) -> pd.DataFrame:
    try:
        return pd.read_csv(file)
    except (OSError, ValueError, EOFError, zlib.error) as error:
        raise UserError(f"{file}: {error}") from None


def _record(loaded: Runs, rows: pd.DataFrame) -> dict[str, Any]:
    """The settings all runs share; two settings in one set would be an error."""
    tasks = set(rows["task"])
    records = [
        row
        for row in records_of(loaded.segments)
        if row["method"] == "finetuning" and len(row["tasks"]) == 1 and row["tasks"][0] in tasks
    ]
    settings = [{key: record[key] for key in KEPT if key in record} for record in records]
    if any(setting != settings[0] for setting in settings):
        raise UserError("single-task runs of different settings: a reference set has one")
    history = {key: records[0][key] for key in HISTORY if key in records[0]}
    history["command"] = re.sub(r" --results[ =]\S+", "", history.get("command") or "")
    history["tasks"] = sorted(tasks)
    history["seeds"] = sorted(int(seed) for seed in rows["seed"].unique())
    return settings[0] | {"tasks": sorted(tasks), "history": [history]}


def _extended(
    rows: pd.DataFrame, record: dict[str, Any], more: pd.DataFrame, new: dict[str, Any]
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """A set with further runs: rows and record."""
    if any(record.get(key) != new.get(key) for key in KEPT):
        raise UserError("these runs differ from the set's in settings: a set has one")
    runs = ["task", "seed"]
    known = more[runs].drop_duplicates().merge(rows[runs].drop_duplicates())
    if len(known):
        task, seed = known.iloc[0]
        raise UserError(f"the set has {task}, seed {seed}, already", "remove it to make it again")
    return pd.concat([rows, more]), record | {
        "tasks": sorted({*record["tasks"], *new["tasks"]}),
        "history": [*record["history"], *new["history"]],
    }


def main(arguments: Sequence[str]) -> int:
    """The exit code: 2, after one line, where the input is wrong."""
    try:
        match arguments:
            case [results, name, folder]:
                print(write_reference(Path(results), name, Path(folder)))
            case ["-h" | "--help"]:
                print(__doc__)
            case _:
                given = " ".join(arguments) or "nothing"
                raise UserError(f"RESULTS NAME FOLDER are needed, not {given}", "see --help")
    except (UserError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
