"""The tables in docs/results follow from the runs shipped with them."""

import re
import runpy
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, nullcontext
from functools import cache
from html import unescape
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner
from scipy import stats

import cwbench
from cwbench.cli import cli
from cwbench.reports import build
from cwbench.reports.analysis import reference
from cwbench.reports.analysis.make_reference import write_reference
from cwbench.reports.analysis.scores import Scores
from cwbench.reports.tables.standings import verdict
from cwbench.store import merge

RESULTS = Path(__file__).resolve().parents[2] / "docs" / "results"


Unpack = Callable[[Path], Path]


@pytest.fixture(scope="module", autouse=True)
def unpack() -> Iterator[Unpack]:
    """The folder of an archive. Unpacked and read once: several scripts use the same runs."""
    opened = merge.opened
    with ExitStack() as stack, pytest.MonkeyPatch.context() as patch:
        unpacked = cache(lambda archive: stack.enter_context(opened(archive)))
        patch.setattr(merge, "opened", lambda archive: nullcontext(unpacked(archive)))
        patch.setattr(cwbench, "load_runs", cache(cwbench.load_runs))
        yield unpacked


@pytest.mark.parametrize(
    ("table", "options", "file"),
    [("cw3", [], "cw3-1.csv"), ("paper-cw3", ["--compare", "paper"], "cw3-1-paper.csv")],
)
def test_tables_follow_from_the_runs(
    table: str, options: list[str], file: str, unpack: Unpack
) -> None:
    folder = unpack(RESULTS / "cw3-1.tar.gz")
    asked = ["report", str(folder), "--table", table, "--format", "csv", *options]
    made = CliRunner().invoke(cli, asked)
    assert made.exit_code == 0, made.output
    rows = [line for line in made.output.splitlines() if not line.startswith("#")]
    shipped = (RESULTS / file).read_text().splitlines()
    assert rows == [line for line in shipped if not line.startswith("#")]
    assert len(rows) > 18  # three metrics of six methods, and their heading


def test_the_page_shows_the_tables() -> None:
    """Every pair of a published number and ours, and every interval."""
    page = (RESULTS / "cw3-1.md").read_text().splitlines()
    cells = [cell.strip() for line in page if line.startswith("|") for cell in line.split("|")]
    pairs = [cell for cell in cells if " / " in cell]
    paper = (RESULTS / "cw3-1-paper.csv").read_text()
    assert len(pairs) == 18
    assert all(f"{pair} protocol differs" in paper for pair in pairs)
    table = pd.read_csv(RESULTS / "cw3-1.csv", comment="#")
    intervals = [
        f"{value:.2f} [{low:.2f}, {high:.2f}]"
        for value, low, high in table[["value", "low", "high"]].to_numpy()
    ]
    assert [cell for cell in cells if "[" in cell and " / " not in cell] == intervals


@pytest.mark.parametrize(
    ("script", "page", "count"),
    [
        ("pairs.py", "pairs.md", 29),
        ("cw3.py", "cw3.md", 83),
        ("ablation.py", "ablation.md", 100),
        ("single_tasks.py", "single-tasks.md", 14),
        ("million.py", "million.md", 17),
        ("both_protocols.py", "both-protocols.md", 47),
        ("componet_single_tasks.py", "componet-single-tasks.md", 6),
        ("lag.py", "lag.md", 13),
        ("packnet_first_task.py", "packnet-first-task.md", 10),
        ("budget.py", "README.md", 16),
        ("point3.py", "point3.md", 34),
    ],
)
def test_a_page_shows_what_its_script_prints(
    script: str,
    page: str,
    count: int,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(RESULTS)  # as for `python docs/results/SCRIPT`
    runpy.run_path(str(RESULTS / script), run_name="__main__")
    rows = capsys.readouterr().out.splitlines()
    assert len(rows) == count
    assert set(rows) <= set((RESULTS / page).read_text().splitlines())


def test_the_p_of_kendalls_tau_counts_all_orders(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(RESULTS)
    kendall = runpy.run_path(str(RESULTS / "kendall.py"))["kendall"]
    # The value that is not tied can come last, first (as extreme) or between the others.
    tau, p = kendall(pd.Series([0.5, 0.5, 0.7]), pd.Series([1.0, 2.0, 3.0]))
    assert (tau, p) == (pytest.approx(2 / 6**0.5), pytest.approx(2 / 3))
    one, other = pd.Series([3.0, 1.0, 2.0, 5.0, 4.0, 6.0]), pd.Series(range(6)).astype(float)
    known = stats.kendalltau(one, other, method="exact")
    assert kendall(one, other) == (pytest.approx(known.statistic), pytest.approx(known.pvalue))


def test_the_page_of_all_runs_begins_as_it_would_now(unpack: Unpack, tmp_path: Path) -> None:
    """`make results-page` was run after the last change of its first sentence."""
    script = runpy.run_path(str(RESULTS.parents[1] / "scripts" / "results_page.py"))
    study = build.read(tmp_path, more=[unpack(archive) for archive in script["archives"]()])
    every = [Scores(study, protocol) for protocol in study.protocols]
    said = [verdict(scores, family) for scores in every for family in scores.families]
    shown = re.findall('<p class="verdict">(.*?)</p>', (RESULTS / "index.html").read_text())
    assert [unescape(text) for text in shown] == [text for text in said if text] != []


def test_the_readme_shows_the_same_intervals_as_the_table() -> None:
    table = pd.read_csv(RESULTS / "cw3-1.csv", comment="#")
    rows = table[table["block"] == "Average Performance"][["value", "low", "high"]].to_numpy()
    readme = (RESULTS.parents[1] / "README.md").read_text()
    for value, low, high in rows:
        assert f"/ {value:.2f} [{low:.2f}, {high:.2f}]" in readme


def test_forward_transfer_is_measured_against_the_shipped_reference() -> None:
    """Two runs of another width in the folder once made RECALL's 0.448."""
    table = pd.read_csv(RESULTS / "cw3-1.csv", comment="#")
    transfer = table[table["block"] == "Forward Transfer"].set_index("column")["value"]
    assert transfer["RECALL"] == pytest.approx(0.248, abs=5e-4)
    assert transfer["Fine-tuning"] == pytest.approx(-0.353, abs=5e-4)


def test_the_reference_of_a_million_steps_follows_from_the_runs(
    unpack: Unpack, tmp_path: Path
) -> None:
    """Of the first three seeds, which every task has; hammer has seven more."""
    results = shutil.copytree(unpack(RESULTS / "single-tasks.tar.gz"), tmp_path / "results")
    for more in results.glob("segments/*-hammer-s[3-9]-*"):
        shutil.rmtree(more)
    made = write_reference(results, "paper", tmp_path)
    shipped = reference.shipped_folder()
    assert made.read_bytes() == (shipped / "paper.csv.gz").read_bytes()
    assert (tmp_path / "paper.json").read_text() == (shipped / "paper.json").read_text()
