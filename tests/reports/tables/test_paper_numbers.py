"""The published numbers, what is wrong with them, and verdicts on known cases."""

import csv
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sample_results import Setting, small, write_results
from scipy import stats

from cwbench.reports import build
from cwbench.reports.analysis.intervals import mean_estimate
from cwbench.reports.analysis.scores import Score, Scores
from cwbench.reports.analysis.study import Options
from cwbench.reports.tables import catalog, other_papers, paper_comparison, paper_numbers
from cwbench.reports.tables.model import Block, Cell
from cwbench.reports.tables.paper_numbers import Published


def published(table: str, row: str, column: str, metric: str) -> Published:
    [cell] = [
        c
        for c in paper_numbers.published()
        if (c.table, c.row, c.column, c.metric) == (table, row, column, metric)
    ]
    return cell


def score(values: list[float]) -> Score:
    return Score(mean_estimate(np.array(values), rng=np.random.default_rng(0)), len(values))


def test_known_cells():
    assert published("cw3", "1", "recall", "average_performance").value == 0.90
    assert published("cw10-cw20", "cw20", "perfect_memory", "forward_transfer").low == -1.44
    assert published("lambda", "100", "recall", "forward_transfer").value == 0.18
    assert published("replay", "(4,3)", "online", "forgetting").value == -0.15
    sharing = published("sharing", "shared actor, unshared critic", "second", "final_success")
    assert sharing.high == 0.95


def test_lint_finds_the_one_impossible_cell():
    assert paper_numbers.lint() == [
        "cw3, row 8, clonex, forward transfer: 0.30 is outside its own interval [-0.81, 0.17]"
    ]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"value": 1.2}, "outside [0, 1]"),
        ({"value": 0.5, "low": 0.6, "high": 0.4}, "upside down"),
        ({"value": 0.5, "low": 0.6, "high": 0.7}, "outside its own interval"),
    ],
)
def test_lint_sees_each_kind_of_mistake(change: dict[str, Any], words: str):
    cell = replace(published("cw3", "1", "recall", "average_performance"), **change)
    assert words in paper_numbers.impossible(cell)


def test_lint_sees_a_mean_that_its_rows_cannot_give(monkeypatch: pytest.MonkeyPatch):
    cells = tuple(
        replace(c, value=c.value + 0.03)
        if (c.table, c.row, c.column, c.metric) == ("cw6", "mean", "ewc", "forgetting")
        else c
        for c in paper_numbers.published()
    )
    monkeypatch.setattr(paper_numbers, "published", lambda: cells)
    assert any("cw6, row mean, ewc, forgetting" in line for line in paper_numbers.lint())


def test_the_error_behind_a_printed_interval():
    """Simulated: percentile intervals of five normal seeds give back the standard error."""
    rng = np.random.default_rng(0)
    ratios = []
    for _ in range(400):
        sample = rng.normal(0.5, 0.1, 5)
        got = mean_estimate(sample, rng=rng, resamples=500)
        cell = Published("cw3", "1", "ewc", "forgetting", got.value, *got.ends("percentile"))
        ratios.append(cell.error / stats.sem(sample))
    assert np.median(ratios) == pytest.approx(1, abs=0.05)


CELL = Published("cw3", "1", "ewc", "average_performance", 0.80, 0.79, 0.81)


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ([0.80, 0.81, 0.79, 0.80, 0.80], "agrees"),
        ([0.60, 0.61, 0.59, 0.60, 0.60], "differs"),
        ([0.95, 0.40, 0.99, 0.60, 0.90], "cannot tell at this n"),
        ([0.80], "cannot tell at this n"),
    ],
)
def test_verdicts(values: list[float], verdict: str):
    assert paper_numbers.verdict(score(values), CELL) == verdict


def test_an_impossible_cell_is_no_target():
    cell = published("cw3", "8", "clonex", "forward_transfer")
    assert paper_numbers.verdict(score([0.3] * 5), cell) == "published cell is impossible"


def test_a_protocol_difference_is_named(triplets: Path):
    study = build.read(triplets)
    scores = Scores(study, study.protocols[0])
    assert paper_numbers.protocol_differences(scores.protocol, scores.window) == [
        "steps_per_task 10000 instead of 1000000",
        "eval_every 1000 instead of 20000",
        "window 2 instead of 10",
    ]
    cells = paper_comparison.stacked(scores, "cw3")[0].rows[0][1]
    assert all(cell.text.endswith("protocol differs") for cell in cells)


def test_every_published_cell_is_shown_next_to_ours(tmp_path: Path):
    settings = [Setting("recall"), Setting("ewc")]
    write_results(tmp_path, sequence_names=["cw3-1"], settings=settings, seeds=range(2))
    study = build.read(tmp_path)
    scores = Scores(study, study.protocols[0])
    assert paper_numbers.protocol_differences(scores.protocol, scores.window) == []
    blocks = paper_comparison.stacked(scores, "cw3")
    cells = {
        (row, column): cell.text
        for row, line in blocks[0].rows
        for column, cell in zip(blocks[0].columns, line, strict=True)
    }
    assert len(cells) == 9 * 6
    assert cells["1", "RECALL"].startswith("0.90 / 0.")
    assert not cells["1", "RECALL"].endswith("of ours")
    assert cells["2", "RECALL"] == "0.92 / – no number of ours"
    assert cells["mean", "RECALL"] == "0.92 / – no number of ours"


def test_studies_are_found_by_their_options(tmp_path: Path):
    """The offline row of Perfect Memory on pair (8,2) is the default, online is not run."""
    pair = ["pair-8-2"]
    write_results(tmp_path, sequence_names=pair, settings=[small("perfect_memory")], seeds=[0, 1])
    study = build.read(tmp_path)
    [block] = paper_comparison.replay(Scores(study, study.protocols[0]))
    row = dict(block.rows)["(8,2)"]
    texts = [cell.text for cell in row]
    assert all(text.endswith("] protocol differs") for text in texts[:2])
    assert all(text.endswith(" – no number of ours") for text in texts[2:])
    assert [text.split(" ")[0] for text in texts] == ["0.75", "0.19", "0.94", "-0.07"]


def test_shipped_numbers_have_no_holes():
    folder = files("cwbench.reports") / "data"
    for name in ("cw3.csv", "cw6.csv"):
        rows = list(csv.DictReader((folder / name).read_text().splitlines()))
        places = {(row["sequence"], row["method"], row["metric"]) for row in rows}
        assert len(places) == len(rows) == 9 * 6 * 3


def test_only_cells_with_a_counterpart_are_shown_unless_asked(tmp_path: Path):
    settings = [Setting("recall"), Setting("ewc")]
    write_results(tmp_path, sequence_names=["cw3-1"], settings=settings, seeds=range(2))

    def cells(options: Options) -> list[str]:
        [(_, _, table)] = build.tables_of(build.read(tmp_path, options), "paper-cw3")
        return [cell.text for block in table.blocks for _, row in block.rows for cell in row]

    few, every = cells(Options()), cells(Options(all_cells=True))
    assert len(every) == 3 * 9 * 6
    assert len(few) == 2 * 2  # two metrics have numbers: transfer lacks a reference
    assert all(text in every and not text.endswith("no number of ours") for text in few)


def test_the_summary_counts_verdicts():
    texts = ["0.1 / 0.1 agrees", "0.1 / 0.5 differs", "0.1 / 0.2 cannot tell at this n"]
    texts += ["0.1 / 0.2 protocol differs", "0.1 / – no number of ours"]
    block = Block("", "", ("a",) * 5, (("row", tuple(Cell(text=text) for text in texts)),))
    assert paper_comparison.overall([block]) == (
        "Of 4 published cells with a number of ours: 1 agree, 1 differ, 1 cannot tell at this "
        "number of seeds, 1 were measured under another protocol, 0 are impossible as published."
    )


def test_other_papers(tmp_path: Path):
    assert other_papers.published("continual-world")[
        "cw20", "packnet", "average_performance"
    ].value == pytest.approx(0.80, abs=0.01)
    cka = other_papers.published("cka-rl")["cw20", "packnet", "forward_transfer"]
    assert cka.value == -0.6721
    write_results(tmp_path, sequence_names=["cw10"], settings=[small("packnet")], seeds=range(2))
    study = build.read(tmp_path)
    names = {
        source: [table.name for _, _, table in build.tables_of(study, compare=source)]
        for source in catalog.SOURCES
    }
    assert "clonex" in names["clonex"]  # it has CW10
    assert "continual-world" not in names["continual-world"]  # it has CW20 only
    [(_, _, table)] = build.tables_of(study, "clonex")
    [(method, cells)] = table.blocks[0].rows
    assert method == "PackNet" and cells[0].text.endswith("protocol differs")


def test_captions_name_the_environment(triplets: Path):
    study = build.read(triplets)
    text = paper_comparison.caption(Scores(study, study.protocols[0]), "cw3")
    assert "metaworld 3.1.1, mujoco 3.3.0 with its physics" in text
    assert "success by Meta-World 3's test at any step (v3-any)" in text
