"""Recompute every table in docs/results from the runs shipped with it, and compare.

`make results-check` runs it. A table belongs to the archive whose name it begins with.
"""

import sys
from pathlib import Path

from cwbench.reports import build
from cwbench.reports.tables.verify import recipe_of, recipe_options, verify
from cwbench.store.merge import opened

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "results"


def tables() -> dict[str, list[Path]]:
    """Archive -> its tables; of several archives that fit, the one with the longest name."""
    found: dict[str, list[Path]] = {
        file.name.removesuffix(".tar.gz"): [] for file in sorted(FOLDER.glob("*.tar.gz"))
    }
    for table in sorted(FOLDER.glob("*.csv")):
        found[max((name for name in found if table.name.startswith(name)), key=len)].append(table)
    return found


def main() -> int:
    differences = 0
    for name, own in tables().items():
        with opened(FOLDER / f"{name}.tar.gz") as results:
            for table in own:
                text = table.read_text(encoding="utf-8")
                study = build.read(results, recipe_options(recipe_of(text)))
                verdict = verify(text, study)
                print(f"{table.name}: {verdict.cells} cells, {len(verdict.differences)} differ")
                for line in verdict.differences:
                    print(f"  {line}")
                differences += len(verdict.differences)
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
