"""The table of settings that were tried."""

from dataclasses import replace
from pathlib import Path

from sample_results import small, write_results

from cwbench.reports import build
from cwbench.reports.analysis.scores import Scores
from cwbench.reports.tables import catalog, tuning


def test_settings_by_score_then_the_mean_of_each_value(with_orders: Scores):
    entry = catalog.find(with_orders, "tuning")
    assert entry is not None
    table = catalog.make(with_orders, entry)
    [block] = table.blocks
    assert "EWC on cw3-1" in block.title and "8 runs, 240,000 environment steps" in block.title
    first, *_ = block.rows
    assert first[0] == "coef = 10.0, layers = [64]"
    assert first[1][0].value == 0.6 and first[1][1].text == "2"
    means = {name: cells[0].text for name, cells in block.rows[4:]}
    assert means == {
        "all with coef = 10.0": "0.50",
        "all with coef = 1.0": "0.20",
        "all with layers = [64]": "0.45",
        "all with layers = [8]": "0.25",
    }
    assert not table.scored  # one kind of interval: no second file


def test_intervals_end_at_what_an_area_can_be(with_orders: Scores):
    [record] = tuning.records(with_orders)
    wide = [{**one, "low": -0.15, "high": 1.2} for one in record["settings"]]
    found = tuning.standings({**record, "settings": wide})
    assert {(row.estimate.low, row.estimate.high) for row in found} == {(0.0, 1.0)}


def test_a_choice_under_another_protocol_is_left_out(with_orders: Scores):
    [record] = tuning.records(with_orders)
    study = replace(with_orders.study, tuning=[{**record, "protocol": "compact"}])
    assert tuning.records(Scores(study, with_orders.protocol)) == []


def test_a_record_without_scores_is_a_problem(tmp_path: Path):
    write_results(tmp_path, sequence_names=["cw3-1"], settings=[small("ewc")], seeds=[0])
    (tmp_path / "tuning").mkdir()
    text = '{"schema": 1, "method": "ewc", "options": {}, "on": [], "settings": [{}]}'
    (tmp_path / "tuning" / "ewc.json").write_text(text)
    study = build.read(tmp_path)
    assert study.tuning == []
    assert any("ewc.json" in problem for problem in study.problems)
