"""What is drawn are the data, in data units."""

import re

import numpy as np
import pytest

from cwbench.reports.analysis.bands import Curve
from cwbench.reports.page import plots

NAN = float("nan")


def points(svg: str, kind: str) -> list[list[float]]:
    [found] = re.findall(rf'<{kind}[^>]*points="([^"]*)"', svg)
    return [[float(number) for number in pair.split(",")] for pair in found.split()]


def test_a_line_plot_holds_steps_and_thousandths_of_its_range():
    curve = Curve(
        np.array([0.0, 0.5, NAN]),
        np.array([NAN, 0.25, NAN]),
        np.array([NAN, 1.0, NAN]),
        np.empty((0, 3)),
    )
    line = plots.Line(3, "A & B", np.array([10.0, 20.0, 30.0]), curve)
    svg = plots.line_plot([line], plots.Axes("label", (0, 30), (-0.5, 1.5)), points=10)
    assert points(svg, "polyline") == [[10, 250], [20, 500]]
    assert points(svg, "polygon") == [[20, 750], [20, 375]]  # upper ends, then lower ones
    assert 'data-name="A &amp; B"' in svg and 'class="m3 s3"' in svg


@pytest.mark.parametrize(
    ("low", "high", "count", "expected"),
    [(0, 1, 4, [0, 0.5, 1]), (0, 3e6, 6, [0, 5e5, 1e6, 1.5e6, 2e6, 2.5e6, 3e6]), (2, 2, 4, [2])],
)
def test_ticks_are_round_numbers(low: float, high: float, count: int, expected: list[float]):
    assert plots.ticks(low, high, count) == pytest.approx(expected)


def test_thinning_keeps_the_first_and_the_last_value_of_each_task():
    assert plots.thin(5, 10).tolist() == [0, 1, 2, 3, 4]
    assert plots.thin(1000, 50)[-1] == 999 and len(plots.thin(1000, 50)) == 50
    assert plots.thin(75, 47, each=25).tolist()[13:17] == [22, 24, 25, 27]
    assert len(plots.thin(75, 47, each=25)) == 45
    assert plots.thin(20, 3, each=5).tolist() == [0, 4, 5, 9, 10, 14, 15, 19]


def test_a_thinned_line_has_the_ends_of_tasks_and_says_so():
    """Of an unfinished run also its last evaluation, 8 of 12."""
    mean = np.where(np.arange(12) < 8, 0.5, NAN)
    none = np.full(12, NAN)
    line = plots.Line(0, "A", np.arange(12.0), Curve(mean, none, none, np.empty((0, 12))), each=4)
    svg = plots.line_plot([line], plots.Axes("label", (0, 12)), points=6)
    assert [x for x, _ in points(svg, "polyline")] == [0, 3, 4, 7]
    assert 'data-part="6 of 12 evaluations drawn"' in svg
    short = np.where(np.arange(12) < 6, 0.5, NAN)
    line = plots.Line(0, "A", np.arange(12.0), Curve(short, none, none, np.empty((0, 12))), each=4)
    svg = plots.line_plot([line], plots.Axes("label", (0, 12)), points=6)
    assert [x for x, _ in points(svg, "polyline")] == [0, 3, 4, 5]
    assert "data-part" not in plots.line_plot([line], plots.Axes("label", (0, 12)), points=12)


def test_a_row_shows_its_value_and_every_seed():
    row = plots.Row(0, "RECALL", 0.5, 0.4, 0.75, dots=(0.25, 1.0))
    text = plots.row_plot([row], (0.0, 1.0), title="t")
    assert re.findall(r'class="seed" cx="([\d.]+)%', text) == ["25.00", "100.00"]
    assert 'x1="40.00%" x2="75.00%"' in text
    assert "<b>0.50</b> <small>[0.40, 0.75]</small>" in text


def test_the_range_of_a_plot_holds_single_runs():
    runs = np.array([[0.0, 3.0], [-2.0, 1.0]])
    curve = Curve(runs.mean(0), np.full(2, NAN), np.full(2, NAN), runs)
    low, high = plots.span(plots.extent([plots.Line(0, "A", np.arange(2.0), curve)]))
    assert low < -2 and high > 3
