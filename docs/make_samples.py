"""The pictures of reports.md, from the results shipped in docs/results.

    python docs/make_samples.py          # all
    python docs/make_samples.py page     # the page only: needs no TeX

Needs `pip install -e '.[test]' pillow`, chromium, pdflatex and pdftoppm.
"""

import shutil
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Literal

from PIL import Image
from playwright.sync_api import ViewportSize, sync_playwright

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from cwbench.reports import build  # noqa: E402
from cwbench.reports.analysis.scores import Scores  # noqa: E402
from cwbench.reports.analysis.study import Options, Study  # noqa: E402
from cwbench.reports.figures import figures  # noqa: E402
from cwbench.store.merge import opened  # noqa: E402
from scripts import results_page  # noqa: E402

PICTURES = Path(__file__).parent / "pictures"
FIGURES = ("cw3-average", "pairs-recall", "pairs-perfect-memory")
METHODS = ("finetuning", "ewc", "packnet", "clonex", "perfect-memory", "recall")  # the paper's
SHOTS: dict[
    str, tuple[int, int, Literal["light", "dark"], str]
] = {  # name: width, height, colours, place on the page
    "page": (1180, 1330, "light", ""),
    "page-dark": (1180, 1000, "dark", "comparison-of-methods"),
    "page-phone": (400, 900, "light", ""),
}


def small(source: Path, name: str, width: int) -> None:
    """A picture with few colours: a tenth of the size, and no difference to the eye."""
    image = Image.open(source).convert("RGB")
    width = min(width, image.width)
    image = image.resize((width, round(image.height * width / image.width)))
    # Few pixels have a method's colour, and all of them matter: cover colours, not pixels.
    # A round of k-means then gives large areas their own grey; without it they are tinted.
    reduced = image.quantize(200, Image.Quantize.MAXCOVERAGE, kmeans=1)
    reduced.save(PICTURES / f"{name}.png", optimize=True)


def screenshots(page: Path, folder: Path) -> None:
    with sync_playwright() as driver:
        chromium = shutil.which("chromium") or shutil.which("google-chrome")
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for name, (width, height, colours, place) in SHOTS.items():
            view = ViewportSize(width=width, height=height)
            tab = browser.new_context(viewport=view, color_scheme=colours).new_page()
            tab.goto(f"{page.as_uri()}#{place}")
            tab.screenshot(path=folder / f"{name}.png")
            small(folder / f"{name}.png", name, min(width, 900))
        browser.close()


def table(folder: Path, name: str) -> None:
    """One table as it prints."""
    text = rf"{build.PREAMBLE}\pagestyle{{empty}}\input{{tables/{name}}}\end{{document}}"
    (folder / "one.tex").write_text(text, encoding="utf-8")
    for command in (
        ["pdflatex", "-interaction=batchmode", "one.tex"],
        ["pdftoppm", "-r", "110", "-f", "1", "-l", "1", "-png", "one.pdf", "printed"],
    ):
        subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    [page] = folder.glob("printed*.png")
    image = Image.open(page).convert("L")
    box = image.point(lambda value: 255 * (value < 200)).getbbox()
    assert box is not None, "an empty page"
    image.crop((box[0] - 10, box[1] - 10, box[2] + 10, box[3] + 10)).save(folder / "table.png")
    small(folder / "table.png", "table", 900)


def draw(study: Study, protocol: str, name: str, folder: Path) -> None:
    """A figure of the first protocol of a name."""
    found = next(one for one in study.protocols if one.name == protocol)
    figures.draw(Scores(study, found), name, folder / name, [".png"])
    small(folder / f"{name}.png", name, 1300)


def main() -> None:
    PICTURES.mkdir(exist_ok=True)
    archives = results_page.archives()
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder, results = Path(name), Path(name) / "shipped results"
        results.mkdir()
        shipped = [stack.enter_context(opened(archive)) for archive in archives]
        screenshots(build.write_page(results, folder / "page", more=shipped), folder)
        if sys.argv[1:] == ["page"]:
            return
        study = build.read(results, Options(methods=METHODS), more=shipped)
        tables = list(build.tables_of(study, "cw3"))
        build.write_tables(tables, folder)
        table(folder, tables[0][0])
        for figure in FIGURES:
            draw(study, "compact", figure, folder)
        every_run = build.read(results, Options(band="runs"), more=shipped)
        draw(every_run, "paper", "single-success", folder)
        million = stack.enter_context(opened(results_page.FOLDER / "million.tar.gz"))
        draw(build.read(million, Options(band="runs")), "paper", "cw3-tasks", folder)


if __name__ == "__main__":
    main()
