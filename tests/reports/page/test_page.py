"""The page in a real browser, opened from disk."""

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
    assert page.title() == "cwbench report"


def test_names_are_text(open_page: Any):
    page = open_page()
    assert page.locator("#tables th", has_text=HOSTILE).count() > 0
    assert page.locator("img").count() == 0
    assert page.title() != "owned"


def column(table: Any, index: int) -> list[str]:
    return [row.locator("td,th").nth(index).inner_text() for row in table.locator("tbody tr").all()]


def test_a_click_sorts_and_the_mean_stays_below(open_page: Any):
    page = open_page()
    table = page.locator("#tables table").first
    assert column(table, 0) == ["1", "2"]
    header = table.locator("thead th").first
    header.click()
    assert header.get_attribute("aria-sort") == "ascending"
    header.click()
    assert column(table, 0) == ["2", "1"]
    assert table.locator("tfoot th").inner_text() == "mean"
    summary = page.locator("#summary table")
    score = summary.locator("thead tr").last.locator("th").nth(1)
    score.click()
    values = [cell for cell in column(summary, 1) if cell[0].isdigit() and "%" not in cell]
    assert values == sorted(values, reverse=True)
    assert "%" in "".join(column(summary, 1)[len(values) :])  # unfinished ones come last


def test_a_number_leads_to_its_seeds(open_page: Any):
    page = open_page()
    row = page.locator("#tables table").first.locator("tbody tr").first
    row.locator("td.best a").first.click()
    target = page.locator(":target")
    assert target.is_visible()
    assert target.locator("tbody tr").count() == 5
    first = target.locator("tbody tr").first
    first.locator("summary").click()
    assert "recall-1-push-s0-" in first.inner_text()
    assert "cwbench run --method recall --seq cw3-1 --seeds 0" in first.inner_text()
    setup = page.locator("details.setup[open]")
    assert "steps_per_task = 10000" in setup.inner_text()
    assert "metaworld 3.1.1" in setup.inner_text()


def test_segment_links_point_to_folders_on_disk(open_page: Any, page_file: Path):
    page = open_page()
    links = page.locator("a.path").evaluate_all("nodes => nodes.map(n => n.getAttribute('href'))")
    assert len(links) > 50
    for link in links[:20]:
        assert (page_file.parent / link / "segment.json").exists()


def test_unfinished_cells_are_hatched_and_show_progress(open_page: Any):
    page = open_page()
    cell = page.locator("#tables tbody td.part").first
    assert cell.inner_text() == "50 %"
    assert "repeating-linear-gradient" in cell.evaluate("n => getComputedStyle(n).backgroundImage")


def test_methods_are_switched_off_by_their_box(open_page: Any):
    page = open_page()
    curves = page.locator(".curves").first
    line = curves.locator(".average svg g.m5").first
    assert line.is_visible()
    curves.locator("input.t5").uncheck()
    assert not line.is_visible()
    assert curves.locator(".average svg g.m3").first.is_visible()
    curves.locator("input.k-tasks").check()
    assert curves.locator(".tasks svg").first.is_visible()
    assert not curves.locator(".average svg").first.is_visible()


def test_matrices_say_more_under_the_pointer(open_page: Any):
    page = open_page()
    page.locator(".matrix").first.locator("td.v").first.hover()
    assert page.locator("#tip").is_visible()
    assert page.locator("#tip").inner_text().startswith("hammer → push-wall")
    assert page.locator(".matrix").first.locator("td.part").count() == 98


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
    assert page.locator("#tables table").count() == 4
    assert page.locator("#tables td.best").first.is_visible()
    charts = page.locator(".kind.average svg")
    assert charts.first.is_visible() and charts.first.bounding_box()["height"] > 100
    page.locator(".curves").first.locator("input.t5").uncheck()  # style alone
    assert not charts.first.locator("g.m5").is_visible()


def test_a_running_study_loads_again_and_a_finished_one_does_not(open_page: Any, tmp_path: Path):
    assert open_page().locator("body").get_attribute("data-live") == "yes"
    write_results(tmp_path, sequence_names=["cw3-1"], settings=[small("ewc")], seeds=[0])
    text = build.write_page(tmp_path, tmp_path / "report").read_text()
    assert 'data-live="no"' in text and 'http-equiv="refresh"' not in text
