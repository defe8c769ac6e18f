"""The headline tables against numbers read straight from the files."""

import csv
from pathlib import Path

import numpy as np
import pytest

from cwbench.reports import build
from cwbench.reports.analysis.scores import Scores
from cwbench.reports.tables.headline import stacked


def test_a_cell_is_the_mean_over_seeds_read_from_the_files(triplets: Path):
    """Second route: straight from the CSV lines of one run's folders."""
    study = build.read(triplets)
    [group] = [g for g in study.groups if (g.sequence, g.method) == ("cw3-1", "recall")]
    per_seed = []
    for run in group.runs:
        text = (triplets / "segments" / run.folders[-1] / "evals.csv").read_text()
        last = csv.DictReader(text.splitlines())
        rates = [int(r["successes"]) / int(r["episodes"]) for r in last if int(r["step"]) > 8000]
        assert len(rates) == 2 * 3  # a window of two evaluations, three tasks
        per_seed.append(np.mean(rates))
    scores = Scores(study, study.protocols[0])
    block = stacked(scores, "cw3")[0]
    shown = block.rows[0][1][block.columns.index("RECALL")]
    assert shown.value == pytest.approx(np.mean(per_seed))
