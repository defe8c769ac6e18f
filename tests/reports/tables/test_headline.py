"""The headline tables against numbers read straight from the files."""

import csv
from pathlib import Path

import numpy as np
import pytest
from sample_results import small, write_results

from cwbench.reports import build
from cwbench.reports.analysis.scores import Scores
from cwbench.reports.analysis.study import Study
from cwbench.reports.tables.details import stability_gap
from cwbench.reports.tables.headline import stacked
from cwbench.reports.tables.standings import after_switch


def test_means_are_over_the_sequences_that_have_the_metric(tmp_path: Path):
    """A single task has no backward transfer; two other sequences have."""
    sequences = ["push-wall", "push-wall,hammer", "hammer,push-wall"]
    write_results(tmp_path, sequence_names=sequences, settings=[small("ewc")], seeds=range(3))
    study = build.read(tmp_path)
    scores = Scores(study, study.protocols[0])
    performance, backward = stacked(scores, "other", ("average_performance", "backward_transfer"))
    rows = {name: cell for name, [cell] in backward.rows}
    assert rows["push-wall"].why == "not defined for a single task"
    mean, others = rows["mean (2 of 3)"], [rows["push-wall-hammer"], rows["hammer-push-wall"]]
    assert mean.value == pytest.approx(np.mean([cell.value for cell in others]))
    assert mean.why == "over the 2 of 3 sequences with several tasks"
    assert performance.rows[-1][0] == "mean"
    [(_, [minimum, *_])] = stability_gap(scores, "other")[0].rows
    assert not np.isnan(minimum.value)
    [setting] = scores.settings("other")
    assert not np.isnan(after_switch(scores, setting).mean).any()


def test_less_forgetting_is_bold_in_the_mean_and_nowhere_else(study: Study):
    """RECALL gains a little; fine-tuning loses nearly all."""
    forgetting = stacked(Scores(study, study.protocols[0], resamples=50), "cw3")[1]
    assert forgetting.title == "Forgetting" and forgetting.rows[-1][0] == "mean"
    *sequences, (_, mean) = forgetting.rows
    bold = {name for name, cell in zip(forgetting.columns, mean, strict=True) if cell.bold}
    assert "RECALL" in bold and "Fine-tuning" not in bold
    assert not any(cell.bold for _, cells in sequences for cell in cells)


def test_a_mean_needs_all_sequences(tmp_path: Path):
    write_results(tmp_path, sequence_names=["cw3-1", "cw3-2"], settings=[small("ewc")], seeds=[0])
    write_results(
        tmp_path, sequence_names=["cw3-1"], settings=[small("recall")], seeds=[0], name="b"
    )
    study = build.read(tmp_path)
    block = stacked(Scores(study, study.protocols[0]), "cw3")[0]
    mean = dict(zip(block.columns, block.rows[-1][1], strict=True))
    assert not mean["EWC"].empty and mean["RECALL"].empty
    assert mean["RECALL"].why == "asked for on 1 of 2 sequences"


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
