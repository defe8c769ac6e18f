"""The page of everything in docs/results: all archives merged, as docs/results/index.html.

`make results-page` runs it; run it again after adding an archive.
"""

import re
import tempfile
from pathlib import Path

from cwbench.reports import build
from cwbench.store.merge import merge

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "results"


def without_folders(page: str) -> str:
    """Leave out of commands where the results were on the machine that trained them."""
    return re.sub(r" --results [^\s<]+", "", page)


def main() -> None:
    with tempfile.TemporaryDirectory() as temporary:
        results = Path(temporary) / "shipped results"
        merged = merge(sorted(FOLDER.glob("*.tar.gz")), results)
        page = build.write_page(results, FOLDER, compare="paper", linked=False)
    page.write_text(without_folders(page.read_text(encoding="utf-8")), encoding="utf-8")
    print(f"{merged.added} segments, {page.stat().st_size / 1e6:.2f} MB: {page}")


if __name__ == "__main__":
    main()
