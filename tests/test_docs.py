"""Documentation names files, headings and pages that exist."""

import csv
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])
FOLDERS = ("cwbench", "methods", "sequences", "reports", "tests", "docs")

LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(#[^)\s]*)?\)")
FILE = re.compile(rf"`((?:{'|'.join(FOLDERS)})/[\w./-]+\.\w+)`")


def text_of(page: Path) -> str:
    """Without blocks of code."""
    return re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)


def anchors(page: Path) -> set[str]:
    heads = re.findall(r"^#+ (.*)$", text_of(page), flags=re.M)
    return {"#" + re.sub(r"[^\w -]", "", head.lower()).strip().replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_and_files_exist(page: Path) -> None:
    text = text_of(page)
    for target, anchor in LINK.findall(text):
        file = (page.parent / target).resolve() if target else page
        assert file.exists(), f"{page.name} links to {target}"
        assert not anchor or anchor in anchors(file), f"{page.name} links to {target}{anchor}"
    for name in FILE.findall(text):
        assert "NAME" in name or (ROOT / name).exists(), f"{page.name} names {name}"


def test_every_page_is_in_a_table_of_contents() -> None:
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    trees = re.findall(r"^```\{toctree\}\n(.*?)^```", index, flags=re.M | re.S)
    names = [line for tree in trees for line in tree.splitlines() if line and line[0] != ":"]
    listed = {page for name in names for page in DOCS.glob(f"{name}.md")}
    assert {*DOCS.rglob("*.md")} - {DOCS / "index.md"} == listed


def test_measurements_are_complete() -> None:
    with (DOCS / "performance.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert rows
    for row in rows:
        assert all(value for name, value in row.items() if name != "runs"), row
        float(row["value"])
