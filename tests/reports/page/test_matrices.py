"""Matrices on the page show the values of their pairs."""

import re

import numpy as np

from cwbench.reports.analysis.pairs import matrices
from cwbench.reports.analysis.scores import Scores
from cwbench.reports.page.matrices import matrices_section, pair_figure
from cwbench.reports.tables.formats import number


def test_every_pair_has_its_value_and_the_others_are_marked(pairs: Scores) -> None:
    """Three pairs of tasks 0, 1 and 2: nine cells, six of which were not asked for."""
    found = matrices(pairs, pairs.study.groups)
    shown = pair_figure(found, "second", pairs.window)
    assert shown.count("<td") == 9 and shown.count("not asked for") == 6
    values = found.values["second"]
    written = re.findall(r'href="#g-[^>]*>([^<]*)</a>', shown)
    assert sorted(written) == sorted(map(number, values[~np.isnan(values)]))


def test_a_worse_value_is_darker(pairs: Scores) -> None:
    found = matrices(pairs, pairs.study.groups)
    shades = []
    for value in (1.0, 0.25):
        found.values["second"][1, 0] = value
        shades += re.findall(
            r'"--x:(\d+)%" title="[^"]*\n' + number(value), pair_figure(found, "second", 2)
        )
    assert shades == ["0", "75"]


def test_pairs_are_no_sequences_of_their_own(pairs: Scores) -> None:
    assert "Success after each task" not in matrices_section(pairs)
    assert "3 pairs ended" in matrices_section(pairs)
