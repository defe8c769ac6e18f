"""The pictures of reports.md: the page from shipped results, figures and a table from made-up ones.

    python docs/make_samples.py          # all
    python docs/make_samples.py page     # the page only: needs no TeX

Needs `pip install -e '.[test]' pillow`, chromium, pdflatex and pdftoppm.
"""

import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Literal

from PIL import Image
from playwright.sync_api import ViewportSize, sync_playwright

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "helpers")]

from sample_results import METHODS, Setting, singles, write_results  # noqa: E402

from cwbench import sequences  # noqa: E402
from cwbench.reports import build  # noqa: E402

PICTURES = Path(__file__).parent / "pictures"
TRIPLETS = [f"cw3-{number}" for number in range(1, 9)]
PAIRS = [f"pair-{first}-{second}" for first in range(10) for second in range(10)]
SHOTS: dict[
    str, tuple[int, int, Literal["light", "dark"], str]
] = {  # name: width, height, colours, place on the page
    "page": (1180, 1330, "light", ""),
    "page-dark": (1180, 1000, "dark", "comparison-of-methods"),
    "page-phone": (400, 900, "light", ""),
}


def results(folder: Path) -> None:
    """Six methods on CW3, references, 100 pairs, and one method half way."""
    finished = [Setting(method) for method in METHODS if method != "packnet"]
    write_results(folder, sequence_names=TRIPLETS, settings=finished, name="cw3")
    write_results(
        folder, sequence_names=TRIPLETS, settings=[Setting("packnet")], name="half", upto=0.6
    )
    write_results(
        folder, sequence_names=PAIRS, settings=[Setting("perfect_memory")], name="p", seeds=[0, 1]
    )
    tasks = singles(sequences.CW_TASKS)
    write_results(folder, sequence_names=tasks, settings=[Setting("finetuning")], name="reference")


def small(source: Path, name: str, width: int) -> None:
    """A picture with few colours: a tenth of the size, and no difference to the eye."""
    image = Image.open(source).convert("RGB")
    width = min(width, image.width)
    image = image.resize((width, round(image.height * width / image.width)))
    # Few pixels have a method's colour, and all of them matter: cover colours, not pixels.
    image.quantize(200, Image.Quantize.MAXCOVERAGE).save(PICTURES / f"{name}.png", optimize=True)


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


def table(report: Path, folder: Path) -> None:
    """The first table of `report.tex` as it prints."""
    for command in (
        ["pdflatex", "-interaction=batchmode", "report.tex"],
        ["pdftoppm", "-r", "110", "-f", "1", "-l", "1", "-png", "report.pdf", "printed"],
    ):
        subprocess.run(command, cwd=report, check=True, stdout=subprocess.DEVNULL)
    [page] = report.glob("printed*.png")
    image = Image.open(page).convert("L")
    box = image.point(lambda value: 255 * (value < 200)).crop((0, 0, image.width, 1150)).getbbox()
    assert box is not None, "an empty page"
    image.crop((box[0] - 10, box[1] - 10, box[2] + 10, box[3] + 10)).save(folder / "table.png")
    small(folder / "table.png", "table", 900)


def shipped_page() -> None:
    """The page of the results in docs/results, wide, dark and on a phone."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with tarfile.open(Path(__file__).parent / "results" / "cw3-1.tar.gz") as archive:
            archive.extractall(folder, filter="data")
        screenshots(build.write_page(folder / "cw3-1", folder / "report"), folder)


def main() -> None:
    PICTURES.mkdir(exist_ok=True)
    shipped_page()
    if sys.argv[1:] == ["page"]:
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        results(folder / "results")
        study = build.read(folder / "results")
        build.write_report(study, folder / "results", folder / "report")
        table(folder / "report", folder)
        for figure in ("cw3-average", "pairs-perfect_memory", "seeds"):
            small(folder / "report" / "figures" / f"{figure}.png", figure, 1300)


if __name__ == "__main__":
    main()
