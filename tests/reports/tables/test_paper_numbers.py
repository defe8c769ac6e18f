"""The published numbers, what is wrong with them, and verdicts on known cases."""

import csv
import math
from dataclasses import replace
from importlib.resources import files
from typing import Any

import numpy as np
import pytest
from scipy import stats

from cwbench.reports.analysis.intervals import Estimate, mean_estimate
from cwbench.reports.analysis.scores import Score
from cwbench.reports.tables import paper_numbers
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


def test_errors_of_published_numbers_by_hand():
    """A half width of 0.1 is 1.645 deviations of a bootstrap, whose n - 1 of n is made up for;
    rounding to two digits adds the deviation of a uniform number of width 0.01."""
    one = Published("cw3", "1", "ewc", "forgetting", 0.8, 0.7, 0.9)
    rounding = 0.01 / math.sqrt(12)
    error = math.hypot(0.1 / 1.6448536 * math.sqrt(5 / 4), rounding)
    assert one.error == pytest.approx(error)
    assert replace(one, low=0.8, high=0.8).error == pytest.approx(rounding)
    assert paper_numbers.mean_error([one] * 4) == pytest.approx(error / 2)  # of independent rows


@pytest.mark.parametrize(
    ("mine", "theirs", "bound", "below", "above"),
    [
        (0.03, 0.05, "reach", "cannot tell at this n", "differs"),
        (0.015, 0.025, "margin", "agrees", "cannot tell at this n"),
    ],
)
def test_verdicts_change_at_the_ends_of_welchs_interval(
    mine: float, theirs: float, bound: str, below: str, above: str
):
    """Ours has two degrees of freedom, published means of five seeds have four."""
    total = mine**2 + theirs**2
    freedom = total**2 / (mine**4 / 2 + theirs**4 / 4)
    reach = stats.t.ppf(0.95, freedom) * math.sqrt(total)
    gap = reach if bound == "reach" else 0.1 - reach
    for sign in (1, -1):
        for nudge, verdict in ((-1e-4, below), (1e-4, above)):
            value = CELL.value + sign * (gap + nudge)
            ours = Score(Estimate(value, error=mine, freedom=2), 3)
            assert paper_numbers.verdict(ours, CELL, theirs) == verdict


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


def test_shipped_numbers_have_no_holes():
    folder = files("cwbench.reports") / "data"
    for name in ("cw3.csv", "cw6.csv"):
        rows = list(csv.DictReader((folder / name).read_text().splitlines()))
        places = {(row["sequence"], row["method"], row["metric"]) for row in rows}
        assert len(places) == len(rows) == 9 * 6 * 3
