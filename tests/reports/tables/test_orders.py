"""The table of orders: present where there are several, with one row for each setting."""

from pathlib import Path

from sample_results import small, write_results

from cwbench.reports.analysis.scores import Scores
from cwbench.reports.build import read
from cwbench.reports.tables import catalog


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
    mean, share, orders, seeds = performance.rows[0][1]
    assert (orders.text, seeds.text) == ("3", "2")
    assert mean.score is not None and share.score is not None
    assert 0 <= share.score.estimate.low <= share.value <= share.score.estimate.high <= 1
    assert mean.score.estimate.low < mean.value < mean.score.estimate.high


def test_one_order_makes_none(tmp_path: Path) -> None:
    write_results(
        tmp_path, sequence_names=["orders-cw10-1"], settings=[small("ewc")], seeds=range(2)
    )
    study = read(tmp_path)
    assert catalog.find(Scores(study, study.protocols[0]), "orders") is None
