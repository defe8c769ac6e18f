"""Scatter plots of the page."""

import re

import pytest

from cwbench.reports.page import scatter
from cwbench.reports.tables.standings import Point

NAN = float("nan")


def test_names_of_points_do_not_lie_on_each_other():
    where = {"A": (0.2, 0.5), "B": (0.21, 0.51), "C": (0.2, 0.1), "D": (0.5, 0.5)}
    named = [Point(0, name, (x, NAN, NAN), (y, NAN, NAN)) for name, (x, y) in where.items()]
    heights = scatter._label_heights(named, scatter.Scatter("t", "x", named), ((0, 1), (0, 1)))
    assert heights == pytest.approx([50, 55, 10, 50])


def test_a_published_point_has_a_line_to_ours_instead_of_a_name():
    known = {"A": ((0.2, 0.1, 0.3), (0.5, NAN, NAN)), "B": ((0.0, NAN, NAN), (1.0, NAN, NAN))}
    ours = [Point(slot, name, *at) for slot, (name, at) in enumerate(known.items())]
    theirs = [Point(-1, name, (0.4, NAN, NAN), (0.25, NAN, NAN)) for name in ("A", "C")]
    text = scatter.scatter_plot(scatter.Scatter("t", "x", [*ours, *theirs]))
    groups = re.findall(r"<g class=(.*?)</g>", text)
    lines = {re.search(r"<title>(.*?):", g)[1]: g.count("<line") for g in groups}  # type: ignore[index]
    assert lines == {"A, published": 1, "C, published": 0, "A": 1, "B": 0}
    assert re.findall(r"<text[^>]*style[^>]*>(.*?)</text>", text) == ["C", "A", "B"]
    assert "grey: published" in text
