"""The page of what was trained on Meta-World, as one study: docs/results/index.html.

`make results-page` runs it; run it again after adding an archive.
"""

import re
import tempfile
from contextlib import ExitStack
from pathlib import Path

from cwbench.reports import build
from cwbench.store.merge import opened

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "results"
LEFT_OUT = {"point3.tar.gz"}  # a small problem; its 34 methods would more than treble the page


def archives() -> list[Path]:
    return sorted(file for file in FOLDER.glob("*.tar.gz") if file.name not in LEFT_OUT)


def without_folders(page: str) -> str:
    """Leave out of commands where the results were on the machine that trained them."""
    return re.sub(r" --results [^\s<]+", "", page)


def main() -> None:
    with tempfile.TemporaryDirectory() as temporary, ExitStack() as stack:
        results = Path(temporary) / "shipped results"
        results.mkdir()
        folders = [stack.enter_context(opened(archive)) for archive in archives()]
        page = build.write_page(results, FOLDER, more=folders, compare="paper", linked=False)
    page.write_text(without_folders(page.read_text(encoding="utf-8")), encoding="utf-8")
    print(f"{len(folders)} archives, {page.stat().st_size / 1e6:.2f} MB: {page}")


if __name__ == "__main__":
    main()
