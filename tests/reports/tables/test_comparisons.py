"""Comparisons of two methods against numbers taken another way."""

from pathlib import Path

import numpy as np
import pytest

from cwbench.reports import build
from cwbench.reports.analysis.scores import Scores
from cwbench.reports.analysis.study import Options
from cwbench.reports.tables import comparisons


def test_comparisons_against_one_method(triplets: Path):
    def rows(options: Options) -> list[str]:
        [(_, _, table)] = build.tables_of(
            build.read(triplets, options), "cw3-comparison-performance"
        )
        return [name for name, _ in table.blocks[0].rows]

    assert len(rows(Options())) == 15
    against = rows(Options(against="ewc"))
    assert len(against) == 5 and all(name.endswith(" - EWC") for name in against)


def test_a_pair_holds_the_difference_of_means_and_p_values_are_adjusted(triplets: Path):
    study = build.read(triplets)
    scores = Scores(study, study.protocols[0], resamples=50)
    pairs = comparisons.pairs(scores, "cw3", "average_performance")
    assert len(pairs) == 15
    means = {
        group.title: [
            scores.per_run(g, "average_performance").mean()
            for g in study.groups
            if (g.method, g.family) == (group.method, "cw3")
        ]
        for group in study.of(study.protocols[0], "cw3")
    }
    for pair in pairs:
        want = np.mean(means[pair.second]) - np.mean(means[pair.first])
        assert pair.differences.mean() == pytest.approx(want)
    raw = [pair.p_value for pair in pairs]
    assert min(raw) == pytest.approx(2 / 2**5)  # five seeds
    assert comparisons.adjusted(pairs).min() == pytest.approx(min(1, 15 * min(raw)))
