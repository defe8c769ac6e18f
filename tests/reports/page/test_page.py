"""The page in a real browser, opened from disk."""

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sample_results import METHODS, small, write_results

from cwbench.reports import build
from cwbench.reports.page.tables import block_table
from cwbench.reports.tables.model import Block, Cell

playwright = pytest.importorskip(
    "playwright.sync_api", reason="playwright is not installed: pip install -e '.[browser]'"
)
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


# A page of unfinished runs loads itself again each minute, which no test here waits for.
NO_RELOAD = "const start = setTimeout; setTimeout = (f, ms) => ms < 60000 ? start(f, ms) : 0;"


def opened(browser: Any, file: Path, place: str = "", **settings: Any) -> Any:
    """The page with given settings; errors and requests are watched."""
    context = browser.new_context(**settings)
    context.set_default_timeout(60_000)
    context.add_init_script(NO_RELOAD)
    page = context.new_page()
    page.errors, page.requests = [], []
    page.on("pageerror", lambda error: page.errors.append(str(error)))
    page.on("request", lambda request: page.requests.append(request.url))
    page.goto(f"{file.as_uri()}#{place}" if place else file.as_uri())
    return page


@pytest.fixture
def open_page(browser: Any, page_file: Path) -> Iterator[Any]:
    pages = []

    def open_with(**settings: Any) -> Any:
        pages.append(opened(browser, page_file, **settings))
        return pages[-1]

    yield open_with
    for page in pages:
        page.context.close()


@pytest.fixture(scope="module")
def loaded_once(browser: Any, page_file: Path) -> Iterator[Any]:
    page = opened(browser, page_file, permissions=["clipboard-read", "clipboard-write"])
    yield page
    page.context.close()


@pytest.fixture
def page(loaded_once: Any) -> Iterator[Any]:
    """One page for all tests that leave it as they found it."""
    yield loaded_once
    loaded_once.evaluate("document.querySelector('dialog').close()")


def test_it_loads_nothing_else_and_runs_without_errors(page: Any, page_file: Path):
    assert page.requests == [page_file.as_uri()]
    assert page.errors == []
    expect(page).to_have_title("cwbench report")


def test_names_are_text(page: Any):
    expect(page.locator("#tables th", has_text=HOSTILE).first).to_be_attached()
    expect(page.locator("img")).to_have_count(0)
    assert page.title() != "owned"


def column(table: Any, index: int) -> Any:
    """The cells of one column; `expect` waits until they are as they should be."""
    return table.locator(f"tbody tr > :nth-child({index + 1})")


def test_a_click_sorts_and_the_mean_stays_below(page: Any):
    table = page.locator("#tables table").first
    expect(column(table, 0)).to_have_text(["1", "2"])
    header = table.locator("thead th").first
    header.click()
    expect(header).to_have_attribute("aria-sort", "ascending")
    header.click()
    expect(column(table, 0)).to_have_text(["2", "1"])
    expect(table.locator("tfoot th")).to_have_text("mean")
    header.click()
    summary = page.locator("#summary table.sortable")
    score = summary.locator("thead tr").last.locator("th").nth(1)
    score.click()
    expect(score).to_have_attribute("aria-sort", "descending")
    texts = column(summary, 1).all_inner_texts()
    values = [cell for cell in texts if cell[0].isdigit() and "%" not in cell]
    assert values == sorted(values, reverse=True)
    assert "%" in "".join(texts[len(values) :])  # unfinished ones come last


AMOUNTS = {"2.00 h": 7200, "9.0 min": 540, "1.5 GB": 1.5e9, "116 MB": 1.16e8, "never": np.inf}


@pytest.mark.parametrize("texts", [["9.0 min", "2.00 h"], ["116 MB", "1.5 GB", "never", "never"]])
def test_texts_sort_by_their_amounts(page: Any, texts: list[str]):
    rows = [("x", (Cell(text=text, amount=AMOUNTS[text]),)) for text in [*texts[1:], texts[0]]]
    table = block_table(Block("", "Method", ("Amount",), tuple(rows)), "t")
    click = """html => {
        const place = document.createElement("div");
        place.innerHTML = html;
        const title = place.querySelectorAll("thead th")[1];
        sortBy(title);
        const down = [...place.querySelectorAll("td")].map(cell => cell.textContent);
        sortBy(title);
        return [down, [...place.querySelectorAll("td")].map(cell => cell.textContent)];
    }"""
    assert page.evaluate(click, table) == [texts[::-1], texts]


def test_an_address_that_is_not_encoded_is_read_as_it_is(page: Any):
    assert page.evaluate("decoded('50%')") == "50%"


def test_a_number_leads_to_its_seeds(page: Any):
    row = page.locator("#tables table").first.locator("tbody tr").first
    titles = page.locator("#tables table").first.locator("thead tr").last.locator("th")
    place = titles.all_inner_texts().index("RECALL")
    row.locator("th, td").nth(place).locator("a").click()
    behind = page.locator("dialog")
    expect(behind).to_be_visible()
    expect(behind.locator("h2")).to_have_text("RECALL")
    expect(behind.locator("tbody tr")).to_have_count(5)
    first = behind.locator("tbody tr").first
    first.locator("summary").click()
    expect(first).to_contain_text("recall-1-push-s0-")
    expect(first).to_contain_text("cwbench run --method recall --seq cw3-1 --seeds 0")
    expect(behind).to_contain_text("steps_per_task = 10000")
    expect(behind).to_contain_text("metaworld 3.1.1")
    page.keyboard.press("Escape")
    expect(behind).to_be_hidden()


def test_segment_links_point_to_folders_on_disk(page: Any, page_file: Path):
    links = page.locator("a.path").evaluate_all("nodes => nodes.map(n => n.getAttribute('href'))")
    assert len(links) > 50
    for link in links[:20]:
        assert (page_file.parent / link / "segment.json").exists()


def test_unfinished_cells_are_hatched_and_show_progress(page: Any):
    cell = page.locator("#tables tbody td.part").first
    expect(cell).to_have_text("50 %")
    expect(cell).to_have_css("background-image", re.compile("repeating-linear-gradient"))


def test_methods_are_switched_off_by_their_box(page: Any):
    curves = page.locator(".curves").first
    line = curves.locator(".average .plot g.m5").first
    expect(line).to_be_visible()
    curves.locator("input.t5").uncheck()
    expect(line).to_be_hidden()
    expect(curves.locator(".average .plot g.m3").first).to_be_visible()
    curves.locator("input.k-tasks").check()
    expect(curves.locator(".tasks svg").first).to_be_visible()
    expect(curves.locator(".average svg").first).to_be_hidden()
    curves.locator("input.t5").check()
    curves.locator("input.k-average").check()


def test_the_pointer_and_the_arrow_keys_show_every_method_at_a_step(page: Any):
    plot = page.locator(".average svg.plot").first
    box = plot.bounding_box()
    plot.hover(position={"x": box["width"] * 0.999, "y": 50})
    tip = page.locator("#tip")
    expect(tip.locator("b")).to_have_text("30k steps, hammer")
    expect(tip.locator("div")).to_contain_text(["RECALL 0.9", "ClonEx"])
    expect(tip.locator("div").first).to_have_text(
        re.compile(r"RECALL 0\.\d\d \[0\.\d\d, [01]\.\d\d\]")
    )
    plot.press("ArrowLeft")
    expect(tip.locator("b")).to_have_text("29k steps, hammer")
    page.locator(".legend input.t5").first.uncheck()
    plot.press("ArrowLeft")
    expect(tip).not_to_contain_text("RECALL")
    page.locator(".legend input.t5").first.check()


def test_a_drag_zooms_and_a_button_shows_the_whole_run(page: Any):
    chart = page.locator("figure.chart").first
    plot = chart.locator(".average svg.plot")
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 3, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 2 / 3, box["y"] + 20)
    page.mouse.up()
    area = plot.locator("svg.area")
    expect(area).to_have_attribute("viewBox", re.compile(r"^(9|10)\d{3}\S* -1000 (9|10)\d{3}"))
    expect(plot.locator(".xs text")).to_contain_text(["12k", "14k", "16k", "18k"])
    chart.get_by_role("button", name="Show the whole run again").click()
    expect(area).to_have_attribute("viewBox", "0 -1000 30000 1000")


def test_downloads_hold_what_is_drawn(page: Any):
    chart = page.locator("figure.chart").first
    texts = {}
    for kind in ("SVG", "CSV"):
        with page.expect_download() as found:
            chart.get_by_role("button", name=f"Download as {kind}").click()
        assert found.value.suggested_filename == f"CW3-1-average-success.{kind.lower()}"
        texts[kind] = Path(found.value.path()).read_text()
    header, *rows = texts["CSV"].splitlines()
    assert header == "method,step,mean,low,high"
    ends = [row.split(",") for row in rows if row.startswith('"RECALL",30000,')]
    assert all(re.fullmatch(r"\d\.\d{4}", text) for text in ends[0][2:])  # as many as are drawn
    assert len(ends) == 1 and 0.8 < float(ends[0][3]) <= float(ends[0][2]) <= float(ends[0][4]) <= 1
    assert texts["SVG"].startswith("<svg") and "var(--" not in texts["SVG"]


def test_a_filter_hides_columns_rows_and_charts_and_is_part_of_the_address(page: Any):
    page.locator("#filter summary").click()
    page.locator("#filter label", has_text="RECALL").locator("input").check()
    page.locator("#filter label", has_text="CW3-2").locator("input").check()
    table = page.locator("#tables table").first
    expect(table.locator("thead th:visible")).to_have_text(["CW3", "RECALL"])
    expect(table.locator("tbody th:visible")).to_have_text(["2"])
    expect(page.locator("#curves figure.chart:visible figcaption b")).to_have_text(["CW3-2"])
    expect(page.locator("#summary .forest th:visible")).to_have_text(["RECALL"])
    assert page.url.endswith("?sequence=CW3-2&method=RECALL")
    page.get_by_role("button", name="Show all").click()
    expect(table.locator("thead th:visible")).to_have_count(6)
    page.locator("#filter summary").click()


def test_a_link_opens_what_it_names(open_page: Any, page_file: Path):
    """A place with a filter, then the runs behind a number."""
    page = open_page(place="tables?method=EWC&kind=tasks")
    titles = page.locator("#tables table").first.locator("thead th:visible")
    expect(titles).to_have_text(["CW3", "EWC"])
    expect(page.locator(".tasks svg.plot").first).to_be_visible()
    expect(page.locator("#tables")).to_be_in_viewport()
    place = page.locator("[id^='g-cw3-2-']").first.get_attribute("id")
    page.goto(f"{page_file.as_uri()}#{place}")
    expect(page.locator("dialog h3")).to_contain_text("CW3-2")


def test_a_table_is_copied_as_latex(page: Any):
    page.locator("#tables .copy").first.click()
    expect(page.locator("#tables .copy").first).to_have_text("Copied")
    text = page.evaluate("navigator.clipboard.readText()")
    assert text.startswith("\\begin{table") and "RECALL" in text and "\\bottomrule" in text


def test_matrices_say_more_under_the_pointer(page: Any):
    page.locator("#matrices .matrix").first.locator("td.v").first.hover()
    expect(page.locator("#tip")).to_be_visible()
    expect(page.locator("#tip")).to_contain_text("hammer → push-wall")
    expect(page.locator("#matrices .matrix").first.locator("td.part")).to_have_count(2)


def test_a_phone_does_not_scroll_sideways(page: Any):
    for width in (360, 400):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.set_viewport_size({"width": 1280, "height": 720})


def test_a_table_shows_numbers_next_to_a_long_name_on_a_phone(page: Any):
    page.set_viewport_size({"width": 400, "height": 800})
    width = "document.querySelector('#summary table.sortable tbody th').offsetWidth"
    assert 70 <= page.evaluate(width) <= 0.45 * 400
    height = "document.querySelector('#summary .forest tbody tr').offsetHeight"
    assert page.evaluate(height) < 60  # its name stays on one line, or two
    page.set_viewport_size({"width": 1280, "height": 720})


def test_the_keyboard_sorts(page: Any):
    table = page.locator("#tables table").nth(1)
    title = table.get_by_role("button").first
    for key, order in (("Enter", ["1", "2"]), (" ", ["2", "1"]), ("Enter", ["1", "2"])):
        title.press(key)
        expect(column(table, 0)).to_have_text(order)


def test_a_screen_reader_finds_named_tables_and_headings_in_order(page: Any):
    nameless = "table:not([aria-label]):not(:has(caption)):not(.matrix table)"
    expect(page.locator(nameless)).to_have_count(0)
    levels = page.evaluate(
        "[...document.querySelectorAll('main h2, main h3, main h4')].map(h => +h.tagName[1])"
    )
    assert all(after <= before + 1 for before, after in pairwise([1, *levels]))
    snapshot = page.locator("#summary").aria_snapshot()
    assert 'table "Average performance on CW3"' in snapshot and "columnheader" in snapshot


def test_paper_has_a_legend_and_whole_tables_on_a_light_ground(page: Any):
    page.emulate_media(media="print", color_scheme="dark")
    expect(page.locator(".legend").first).to_be_visible()
    expect(page.locator(".legend input").first).to_be_hidden()
    expect(page.locator("nav")).to_be_hidden()
    assert brightness(page, "backgroundColor") > brightness(page, "color") + 300
    page.set_viewport_size({"width": 760, "height": 1000})  # what A4 leaves
    assert page.evaluate("document.documentElement.scrollWidth") <= 760
    page.set_viewport_size({"width": 1280, "height": 720})
    page.emulate_media(media="screen", color_scheme="light")


def test_folded_parts_are_open_on_paper_only(page: Any):
    folds = page.locator("main details:not([open])")
    before = folds.count()
    assert before > 0
    page.evaluate(
        "addEventListener('beforeprint', () => { window.printed = "
        "document.querySelectorAll('main details:not([open])').length }, {once: true})"
    )
    page.pdf()
    assert page.evaluate("window.printed") == 0
    expect(folds).to_have_count(before)


def brightness(page: Any, name: str) -> float:
    text = page.evaluate(f"getComputedStyle(document.body).{name}")
    return sum(float(part) for part in text.strip("rgba()").split(",")[:3])


def test_dark_mode_turns_the_colours_round(page: Any):
    for scheme, bright, dark in (
        ("dark", "color", "backgroundColor"),
        ("light", "backgroundColor", "color"),
    ):
        page.emulate_media(color_scheme=scheme)
        assert brightness(page, bright) > brightness(page, dark) + 300


def test_without_scripts_tables_and_images_are_there(open_page: Any):
    page = open_page(java_script_enabled=False)
    expect(page.locator("#tables table")).to_have_count(4)
    expect(page.locator("#tables td.best").first).to_be_visible()
    charts = page.locator(".kind.average svg")
    expect(charts.first).to_be_visible()
    page.locator(".curves").first.locator("input.t5").uncheck()  # style alone
    expect(charts.first.locator("g.m5")).to_be_hidden()


def test_a_running_study_loads_again_and_a_finished_one_does_not(page: Any, tmp_path: Path):
    expect(page.locator("body")).to_have_attribute("data-live", "yes")
    write_results(tmp_path, sequence_names=["cw3-1"], settings=[small("ewc")], seeds=[0])
    text = build.write_page(tmp_path, tmp_path / "report").read_text()
    assert 'data-live="no"' in text and 'http-equiv="refresh"' not in text


def test_the_page_of_the_shipped_results_opens(browser: Any):
    file = Path(__file__).parents[3] / "docs" / "results" / "index.html"
    assert "--results" not in file.read_text(encoding="utf-8")  # a folder of another machine
    page = opened(browser, file)
    assert page.errors == [] and page.requests == [file.as_uri()]
    summaries = page.locator("[id^=summary] table.sortable")
    row = summaries.locator("tbody tr", has=page.get_by_text("RECALL", exact=True))
    # Under Continual World's rules, at a quarter of the steps and at a million, and CompoNet's.
    expect(row).to_have_count(3)
    expect(page.locator("[id^=runs] a.path")).to_have_count(0)  # the folders are not there
    expect(page.locator("#comparison-with-the-published-numbers table").first).to_be_visible()
    page.get_by_role("link", name="Matrices").first.click()  # its heading is not behind the links
    heading = page.get_by_role("heading", name="Matrices (compact)", exact=True)
    # Not wait_for_function: after its first look it needs eval, which the page forbids.
    heading.evaluate(
        "h => new Promise((done, failed) => { setTimeout(failed, 60000); const look = () => {"
        " const top = h.getBoundingClientRect().top;"
        " const seen = top >= document.querySelector('nav').offsetHeight && top < innerHeight / 2;"
        " seen ? done() : setTimeout(look, 50); }; look(); })"
    )
    page.context.close()
    assert file.stat().st_size < 8e6  # with 607 runs 6.6 MB
