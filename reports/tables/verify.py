"""Exported tables carry what is needed to recompute them; this compares cell by cell."""

import csv
import io
import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import count, zip_longest
from pathlib import Path
from typing import Any

from cwbench.reports.analysis.scores import Scores
from cwbench.reports.analysis.study import Options, Study
from cwbench.reports.tables import catalog
from cwbench.reports.tables.formats import FORMATS, ROUNDING
from cwbench.reports.tables.model import Table
from cwbench.spec.errors import UserError

# block, row, how many columns of the same title come before, title of the column
CellKey = tuple[str, str, int, str]
# Options that a recipe names only where the reader chose something.
CHOSEN = ("all_cells", "success", "against", "protocols", "sequences", "methods")
_COMMENT = {"latex": "% {}\n", "markdown": "<!-- {} -->\n", "csv": "# {}\n"}


def sign(scores: Scores, table: Table, format: str, interval: str) -> str:
    """The table as text, ending with a line that says how to recompute it."""
    recipe = {
        "table": table.name,
        "format": format,
        "interval": interval,
        "protocol": scores.protocol.key,
        "window": scores.window,
        "level": scores.level,
    }
    options = scores.study.options
    recipe |= {name: value for name in CHOSEN if (value := getattr(options, name))}
    line = "cwbench-table " + json.dumps(recipe, sort_keys=True)
    return FORMATS[format][0](table, interval) + _COMMENT[format].format(line)


def tables_in(text: str) -> list[str]:
    """The tables of a file: `--table` writes one for each protocol."""
    parts = re.findall(r".*?cwbench-table [^\n]*\n?", text, re.DOTALL)
    return parts or [text]


def recipe_of(text: str) -> dict[str, Any]:
    """The recipe of an exported table; UserError if the text has none."""
    match = re.search(r"cwbench-table (\{.*\})", text)
    if not match:
        raise UserError("no `cwbench-table` line: this is not a table that `cwbench report` wrote")
    try:
        recipe: dict[str, Any] = json.loads(match[1])
        if not {"table", "format", "interval", "protocol", "window"} <= recipe.keys():
            raise ValueError("incomplete")
    except ValueError:
        raise UserError("its `cwbench-table` line is damaged") from None
    return recipe


def recipe_options(recipe: Mapping[str, Any]) -> Options:
    """How the results must be read to recompute the table."""
    names = ("protocol", "window", "level", *CHOSEN)  # early tables have no level
    given = {name: recipe[name] for name in names if name in recipe}
    lists = {name: tuple(value) for name, value in given.items() if isinstance(value, list)}
    return Options(**given | lists)


NAME_RESULTS = "give the folder that the table was made from with --results"
EXPORT_AGAIN = "or export it again, if it is of gymnasium tasks and an earlier version"


@dataclass(frozen=True)
class Verdict:
    cells: int
    differences: list[str]


def verify(text: str, study: Study, results: Path | str = "the results folder") -> Verdict:
    """Recompute the table from a results folder, read with the recipe's window."""
    recipe = recipe_of(text)
    protocol = next((p for p in study.protocols if p.key == recipe["protocol"]), None)
    if protocol is None:
        have = ", ".join(f"{p.name} ({p.key})" for p in study.protocols) or "none"
        why = f"{results} has no run under protocol {recipe['protocol']}, it has {have}"
        return Verdict(0, [f"{why}; {NAME_RESULTS}, {EXPORT_AGAIN}"])
    scores = Scores(study, protocol)
    entry = catalog.find(scores, recipe["table"])
    if entry is None:
        return Verdict(0, [f"{results} has no run for table {recipe['table']!r}; {NAME_RESULTS}"])
    again = sign(scores, catalog.make(scores, entry), recipe["format"], recipe["interval"])
    read = READERS[recipe["format"]]
    old, new = read(text), read(again)
    differences = []
    for key in dict.fromkeys([*old, *new]):
        if not _same(old.get(key), new.get(key)):
            block, row, _, column = key
            where = ", ".join(filter(None, [block, f"row {row}", f"column {column}"]))
            differences.append(
                f"{where}: the file has {old.get(key, 'no such cell')!r}, "
                f"the results give {new.get(key, 'no such cell')!r}"
            )
    return Verdict(len(new), differences)


def _same(old: str | None, new: str | None) -> bool:
    """Equal, but for the last of six digits: processors add in different orders."""
    if old is None or new is None:
        return False
    return all(
        one == other or _close(one, other)
        for one, other in zip_longest(old.split(","), new.split(","), fillvalue="")
    )


def _close(one: str, other: str) -> bool:
    try:
        return math.isclose(float(one), float(other), rel_tol=1.1e-5, abs_tol=ROUNDING)
    except ValueError:
        return False


LATEX_TITLE = re.compile(r"\\multicolumn\{\d+\}\{c\}\{\\textbf\{(?:\\underline\{)?(.*?)\}+ \\\\")


def _latex_cells(text: str) -> dict[CellKey, str]:
    """Tables up to version 0.2 have underlined titles and `\\hline` where new ones have rules."""
    found: dict[CellKey, str] = {}
    block, header, before, inside = "", [""], "", False
    for line in text.splitlines():
        if match := LATEX_TITLE.match(line):
            block = match[1]
        elif line == r"\midrule" and not inside:
            header, inside = _split(before, r"(?<!\\)&"), True
        elif line.startswith((r"\hline \hline", r"\midrule[", r"\bottomrule")):
            inside = False
        elif inside and not line.startswith((r"\hline", r"\vspace", r"\midrule")):
            _add_row(found, block, header, _split(line, r"(?<!\\)&"))
        before = line
    return found


def _markdown_cells(text: str) -> dict[CellKey, str]:
    found: dict[CellKey, str] = {}
    block, header = "", [""]
    lines = text.splitlines()
    for line, following in zip_longest(lines, lines[1:], fillvalue=""):
        if match := re.fullmatch(r"\*([^*].*)\*", line):
            block = match[1]
        elif line.startswith("|") and following.startswith("| - |"):
            header = _split(line[1:-1], r"(?<!\\)\|")
        elif line.startswith("|") and not line.startswith("| - |"):
            _add_row(found, block, header, _split(line[1:-1], r"(?<!\\)\|"))
    return found


def _csv_cells(text: str) -> dict[CellKey, str]:
    found: dict[CellKey, str] = {}
    lines = [line for line in text.splitlines(keepends=True) if not line.startswith("# ")]
    for row in list(csv.reader(io.StringIO("".join(lines))))[1:]:
        block, name, column, *cells = [*row, "", "", ""][: max(3, len(row))]
        _add(found, block, name, column, ",".join(cells))
    return found


def _split(line: str, separator: str) -> list[str]:
    return [cell.strip() for cell in re.split(separator, line.removesuffix(r" \\"))]


def _add_row(found: dict[CellKey, str], block: str, header: list[str], cells: list[str]) -> None:
    for column, cell in zip_longest(header[1:], cells[1:], fillvalue="?"):
        _add(found, block, cells[0], column, cell)


def _add(found: dict[CellKey, str], block: str, row: str, column: str, cell: str) -> None:
    """Counts columns of one title, so that it does not matter on which page a column is."""
    keys = ((block, row, before, column) for before in count())
    found[next(key for key in keys if key not in found)] = cell


READERS: dict[str, Callable[[str], dict[CellKey, str]]] = {
    "latex": _latex_cells,
    "markdown": _markdown_cells,
    "csv": _csv_cells,
}
