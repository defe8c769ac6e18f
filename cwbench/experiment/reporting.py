"""Reports from Python, made by `cwbench report` in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

from cwbench.experiment.results_folder import folder_named
from cwbench.spec.errors import UserError

if TYPE_CHECKING:
    import pandas as pd


def report(results: str | Path, out: str | Path | None = None, **options: object) -> Path:
    """Write tables, figures and a page to RESULTS/report or `out`; return the path of the page.

    Options are those of `cwbench report`: `level=0.95`, `method=["ewc", "recall*"]`, `png=True`.
    """
    for name in ("table", "format", "interval"):
        if name in options:
            raise UserError(f"{name}: a report has all tables", "cwbench.table returns one")
    folder = folder_named(results)
    target = folder / "report" if out is None else folder_named(out, "folder")
    _report(options, folder, *([] if out is None else [target]))
    return target / "index.html"


def table(results: str | Path, name: str, **options: object) -> pd.DataFrame:
    """One table of a report: a row per cell, with its intervals.

    Options are those of `cwbench report`. Where the folder has several protocols, `protocol` says
    which one is meant.
    """
    import pandas as pd

    chosen = {**options, "table": name, "format": "csv"}
    text = _report(chosen, folder_named(results))
    if text.count("\n# cwbench-table ") > 1:
        raise UserError(f"table {name}: there is one for each protocol", "name one with protocol=")
    cells = [line for line in text.splitlines() if not line.startswith("# ")]
    dtype = dict.fromkeys(("block", "row", "column", "note"), str)
    return pd.read_csv(
        StringIO("\n".join(cells)), dtype=dtype, keep_default_na=False, na_values=[""]
    )


def _report(options: dict[str, object], *paths: Path) -> str:
    flags = [flag for name, value in options.items() for flag in _flags(name, value)]
    command = [sys.executable, "-m", "cwbench", "report", *flags, "--", *map(str, paths)]
    made = subprocess.run(command, capture_output=True, text=True)
    if made.returncode:
        lines = made.stderr.strip().splitlines() or ["cwbench: the report could not be written"]
        raise UserError(lines[-1].removeprefix("cwbench: "))
    return made.stdout


def _flags(name: str, value: object) -> list[str]:
    """An option as the command line has it."""
    if value is None or value is False:
        return []
    flag = f"--{name.replace('_', '-')}"
    if value is True:
        return [flag]
    parts = value if isinstance(value, list | tuple) else [value]
    return [f"{flag}={','.join(map(str, parts))}"]
