"""The table of orders: present where there are several, with one row for each setting."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sample_results import small, write_results
from scipy import stats

from cwbench.reports import build
from cwbench.reports.analysis.scores import Scores
from cwbench.reports.build import read
from cwbench.reports.tables import catalog, orders
from cwbench.reports.tables.model import Table


def test_several_orders_make_a_table(tmp_path: Path) -> None:
    names = ["orders-cw10-1", "orders-cw10-2", "orders-cw10-3"]
    write_results(tmp_path, sequence_names=names, settings=[small("ewc")], seeds=range(2))
    study = read(tmp_path)
    scores = Scores(study, study.protocols[0], resamples=50)
    entry = catalog.find(scores, "orders")
    assert entry is not None
    performance, *others = catalog.make(scores, entry).blocks
    assert len(others) == 2
    assert [name for name, _ in performance.rows] == ["EWC, orders-cw10"]
    mean, share, number, seeds = performance.rows[0][1]
    assert (number.text, seeds.text) == ("3", "2")
    assert mean.score is not None and share.score is not None
    assert 0 <= share.score.estimate.low <= share.value <= share.score.estimate.high <= 1
    assert mean.score.estimate.low < mean.value < mean.score.estimate.high


def test_the_interval_is_of_the_level_and_the_dots_are_orders(with_orders: Scores) -> None:
    """Three orders of two seeds: Student's t with two degrees of freedom on the orders' means."""
    study = with_orders.study
    asked = replace(study, options=replace(study.options, level=0.5))
    groups = study.groups
    means = [with_orders.per_run(group, "average_performance").mean() for group in groups]
    for scores, level in ((with_orders, 0.9), (Scores(asked, study.protocols[0]), 0.5)):
        [[standing]] = orders.standings(scores).values()
        np.testing.assert_allclose(standing.runs, means)
        low, high = stats.t.interval(level, 2, np.mean(means), stats.sem(means))
        assert standing.estimate.ends() == pytest.approx((max(low, 0), min(high, 1)))


def test_one_order_makes_none(tmp_path: Path) -> None:
    write_results(
        tmp_path, sequence_names=["orders-cw10-1"], settings=[small("ewc")], seeds=range(2)
    )
    study = read(tmp_path)
    assert catalog.find(Scores(study, study.protocols[0]), "orders") is None


def table_of(root: Path) -> Table:
    [(_, _, table)] = build.tables_of(build.read(root), "orders")
    return table


def test_an_order_without_a_finished_run_leaves_the_cell_empty(tmp_path: Path) -> None:
    """As the caption has it: only seeds that have ended in every order."""
    names, settings = ["orders-cw10-1", "orders-cw10-2"], [small("ewc")]
    write_results(tmp_path, sequence_names=names, settings=settings, seeds=range(2))
    write_results(
        tmp_path, sequence_names=["orders-cw10-3"], settings=settings, seeds=[0], upto=0.5, name="c"
    )
    [(_, (mean, share, *_))] = table_of(tmp_path).blocks[0].rows
    assert mean.empty and mean.why == share.why == "no seed has ended in all orders"


def test_equal_runs_have_no_share_and_say_why(tmp_path: Path) -> None:
    names = ["orders-cw10-1", "orders-cw10-2"]
    write_results(tmp_path, sequence_names=names, settings=[small("ewc")], seeds=range(2))
    for file in tmp_path.glob("segments/*/evals.csv"):
        pd.read_csv(file).assign(successes=5).to_csv(file, index=False)
    [(_, (mean, share, *_))] = table_of(tmp_path).blocks[0].rows
    assert mean.value == 0.5 and mean.why == ""
    assert share.empty and share.why == "runs do not differ"
