"""The page in a real browser, opened from disk."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sample_results import METHODS, small, write_results

from cwbench.reports import build

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), ""
)
playwright = pytest.importorskip(
    "playwright.sync_api", reason="playwright is not installed: pip install -e '.[browser]'"
)
pytestmark = pytest.mark.skipif(not CHROMIUM, reason="no chromium is installed")

playwright.expect.set_options(timeout=60_000)  # a loaded machine is no failure
expect = playwright.expect
HOSTILE = "<img src=x onerror=document.title='owned'>"


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Finished and unfinished runs, pairs, a single seed and a name that tries to be a script."""
    root = tmp_path_factory.mktemp("page")
    results = root / "results"
    write_results(results, sequence_names=["cw3-1", "cw3-2"], settings=map(small, METHODS[3:]))
    write_results(results, sequence_names=["cw3-1"], settings=[small("ewc")], name="half", upto=0.5)
    write_results(
        results,
        sequence_names=["pair-0-1", "pair-2-3"],
        settings=[small("recall")],
        name="pairs",
        seeds=[0],
    )
    write_results(results, sequence_names=["cw3-1"], settings=[small(HOSTILE)], name="x", seeds=[0])
    build.write_page(results, root / "report")
    return root / "report" / "index.html"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield running
        running.close()


@pytest.fixture
def open_page(browser: Any, page_file: Path) -> Iterator[Any]:
    """Opens the page with given settings and watches for errors and requests."""
    contexts = []

    def open_with(**settings: Any) -> Any:
        context = browser.new_context(**settings)
        context.set_default_timeout(60_000)
        contexts.append(context)
        page = context.new_page()
        page.errors, page.requests = [], []
        page.on("pageerror", lambda error: page.errors.append(str(error)))
        page.on("request", lambda request: page.requests.append(request.url))
        page.goto(page_file.as_uri())
        return page

    yield open_with
    for context in contexts:
        context.close()


def test_it_loads_nothing_else_and_runs_without_errors(open_page: Any, page_file: Path):
    page = open_page()
    assert page.requests == [page_file.as_uri()]
    assert page.errors == []
    expect(page).to_have_title("cwbench report")


def test_names_are_text(open_page: Any):
    page = open_page()
    expect(page.locator("#tables th", has_text=HOSTILE).first).to_be_attached()
    expect(page.locator("img")).to_have_count(0)
    assert page.title() != "owned"


def column(table: Any, index: int) -> Any:
    """The cells of one column; `expect` waits until they are as they should be."""
    return table.locator(f"tbody tr > :nth-child({index + 1})")


def test_a_click_sorts_and_the_mean_stays_below(open_page: Any):
    page = open_page()
    table = page.locator("#tables table").first
    expect(column(table, 0)).to_have_text(["1", "2"])
    header = table.locator("thead th").first
    header.click()
    expect(header).to_have_attribute("aria-sort", "ascending")
    header.click()
    expect(column(table, 0)).to_have_text(["2", "1"])
    expect(table.locator("tfoot th")).to_have_text("mean")
    summary = page.locator("#summary table")
    score = summary.locator("thead tr").last.locator("th").nth(1)
    score.click()
    expect(score).to_have_attribute("aria-sort", "descending")
    texts = column(summary, 1).all_inner_texts()
    values = [cell for cell in texts if cell[0].isdigit() and "%" not in cell]
    assert values == sorted(values, reverse=True)
    assert "%" in "".join(texts[len(values) :])  # unfinished ones come last


def test_a_number_leads_to_its_seeds(open_page: Any):
    page = open_page()
    row = page.locator("#tables table").first.locator("tbody tr").first
    titles = page.locator("#tables table").first.locator("thead tr").last.locator("th")
    place = titles.all_inner_texts().index("RECALL")
    row.locator("th, td").nth(place).locator("a").click()
    target = page.locator(":target")
    expect(target).to_be_visible()
    expect(target.locator("tbody tr")).to_have_count(5)
    first = target.locator("tbody tr").first
    first.locator("summary").click()
    expect(first).to_contain_text("recall-1-push-s0-")
    expect(first).to_contain_text("cwbench run --method recall --seq cw3-1 --seeds 0")
    setup = page.locator("details.setup[open]")
    expect(setup).to_contain_text("steps_per_task = 10000")
    expect(setup).to_contain_text("metaworld 3.1.1")


def test_segment_links_point_to_folders_on_disk(open_page: Any, page_file: Path):
    page = open_page()
    links = page.locator("a.path").evaluate_all("nodes => nodes.map(n => n.getAttribute('href'))")
    assert len(links) > 50
    for link in links[:20]:
        assert (page_file.parent / link / "segment.json").exists()


def test_unfinished_cells_are_hatched_and_show_progress(open_page: Any):
    page = open_page()
    cell = page.locator("#tables tbody td.part").first
    expect(cell).to_have_text("50 %")
    expect(cell).to_have_css("background-image", re.compile("repeating-linear-gradient"))


def test_methods_are_switched_off_by_their_box(open_page: Any):
    page = open_page()
    curves = page.locator(".curves").first
    line = curves.locator(".average svg g.m5").first
    expect(line).to_be_visible()
    curves.locator("input.t5").uncheck()
    expect(line).to_be_hidden()
    expect(curves.locator(".average svg g.m3").first).to_be_visible()
    curves.locator("input.k-tasks").check()
    expect(curves.locator(".tasks svg").first).to_be_visible()
    expect(curves.locator(".average svg").first).to_be_hidden()


def test_matrices_say_more_under_the_pointer(open_page: Any):
    page = open_page()
    page.locator(".matrix").first.locator("td.v").first.hover()
    expect(page.locator("#tip")).to_be_visible()
    expect(page.locator("#tip")).to_contain_text("hammer → push-wall")
    expect(page.locator(".matrix").first.locator("td.part")).to_have_count(98)


@pytest.mark.parametrize("width", [360, 390])
def test_a_phone_does_not_scroll_sideways(open_page: Any, width: int):
    page = open_page(viewport={"width": width, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def brightness(page: Any, name: str) -> float:
    text = page.evaluate(f"getComputedStyle(document.body).{name}")
    return sum(float(part) for part in text.strip("rgba()").split(",")[:3])


def test_dark_mode_turns_the_colours_round(open_page: Any):
    light, dark = open_page(color_scheme="light"), open_page(color_scheme="dark")
    assert brightness(light, "backgroundColor") > brightness(light, "color") + 300
    assert brightness(dark, "color") > brightness(dark, "backgroundColor") + 300


def test_without_scripts_tables_and_images_are_there(open_page: Any):
    page = open_page(java_script_enabled=False)
    expect(page.locator("#tables table")).to_have_count(4)
    expect(page.locator("#tables td.best").first).to_be_visible()
    charts = page.locator(".kind.average svg")
    expect(charts.first).to_be_visible()
    page.locator(".curves").first.locator("input.t5").uncheck()  # style alone
    expect(charts.first.locator("g.m5")).to_be_hidden()


def test_a_running_study_loads_again_and_a_finished_one_does_not(open_page: Any, tmp_path: Path):
    expect(open_page().locator("body")).to_have_attribute("data-live", "yes")
    write_results(tmp_path, sequence_names=["cw3-1"], settings=[small("ewc")], seeds=[0])
    text = build.write_page(tmp_path, tmp_path / "report").read_text()
    assert 'data-live="no"' in text and 'http-equiv="refresh"' not in text
