"""The charts that compare methods show the numbers of the tables."""

import re
from pathlib import Path

import pytest
from sample_results import small, write_results

from cwbench.reports import build
from cwbench.reports.analysis.scores import Scores
from cwbench.reports.analysis.study import Study
from cwbench.reports.page import overview
from cwbench.reports.page import page as page_module
from cwbench.reports.tables import comparisons, standings
from cwbench.reports.tables.formats import number


@pytest.fixture(scope="module")
def scores(study: Study) -> Scores:
    return Scores(study, study.protocols[0], resamples=100)


def test_the_summary_has_a_row_per_method_that_leads_to_its_runs(scores: Scores) -> None:
    shown = overview.summary_charts(scores)
    assert "Average performance on CW3" in shown
    found = standings.standings(scores, "cw3", "average_performance")
    assert len(found) == 6
    for row in found:
        assert f"#s-{row.setting.setup}" in shown and row.setting.title in shown


def test_the_verdict_comes_first(scores: Scores) -> None:
    said = standings.verdict(scores, "cw3")
    assert said and overview.summary_charts(scores).startswith('<p class="verdict">')


def test_ranks_are_those_of_the_standings(scores: Scores) -> None:
    section = overview.comparison_section(scores)
    chart = section[section.index("Mean rank (1 is best)") :]
    found, _ = standings.rank_standings(scores, "cw3")
    for row in found:
        line = chart[chart.index(row.setting.title) :]
        assert number(row.estimate.value) in line[: line.index("</tr>")]


def test_one_seed_tells_no_ranks_apart(scores: Scores, tmp_path: Path) -> None:
    settings = [small("ewc"), small("recall")]
    write_results(tmp_path, sequence_names=["cw3-1"], settings=settings, seeds=[0])
    study = build.read(tmp_path)
    section = overview.comparison_section(Scores(study, study.protocols[0]))
    assert "One seed cannot tell ranks apart." in section and "Sign-flip test" not in section
    assert "<polygon" not in profile_of(section)
    assert "Sign-flip test" in overview.comparison_section(scores)  # five seeds


def profile_of(section: str) -> str:
    return section.split('aria-label="Performance profile')[1].split("</figure>")[0]


def test_a_profile_is_named_without_an_evaluation(scores: Scores) -> None:
    """Its axis is a threshold."""
    profile = profile_of(overview.comparison_section(scores))
    assert "<title>Fine-tuning</title><polygon" in profile and "evaluation" not in profile


def test_nothing_is_drawn_before_a_run_has_ended(tmp_path: Path) -> None:
    write_results(tmp_path, sequence_names=["cw3-1"], settings=[small("ewc")], seeds=[0], upto=0.5)
    study = build.read(tmp_path)
    assert overview.comparison_section(Scores(study, study.protocols[0])) == ""


def test_what_a_switch_does_and_who_beats_whom_are_drawn(scores: Scores) -> None:
    section = overview.comparison_section(scores)
    assert "Old tasks after a switch" in section and "Negative Transfer" in section
    matrix = section[section.index("Differences in average performance") :]
    pair = comparisons.pairs(scores, "cw3", "average_performance")[0]
    value = pair.differences.mean()
    assert f"{value:+.2f}<br>" in matrix and f"{-value:+.2f}<br>" in matrix


def test_orders_and_tried_settings_are_drawn_where_there_are_some(
    scores: Scores, with_orders: Scores
) -> None:
    section = overview.comparison_section(with_orders)
    assert "Average performance on orders-cw10, orders as dots" in section
    assert (
        "Anytime performance of EWC on cw3-1" in section and "coef = 10.0, layers = [64]" in section
    )
    plain = overview.comparison_section(scores)
    assert "Orders of tasks" not in plain and "Tuned options" not in plain


def test_the_summary_keeps_its_columns_where_a_method_lacks_a_family(tmp_path: Path):
    """Fine-tuning has no run on CW6: its number on CW10 is not shown there."""
    for name, methods in (
        ("cw3-1", ["finetuning", "ewc"]),
        ("cw6-1", ["ewc"]),
        ("cw10", ["finetuning", "ewc"]),
    ):
        settings = map(small, methods)
        write_results(tmp_path, sequence_names=[name], settings=settings, seeds=[0], name=name)
    study = build.read(tmp_path)
    [protocol] = study.protocols
    scores = Scores(study, protocol)
    text = re.sub(r"<[^>]+>", " ", page_module._summary(list(build.tables_of(study))))
    rows = {title: text.split(title)[1].split()[:9] for title in ("Fine-tuning", "EWC")}
    for title, method, families in (
        ("Fine-tuning", "finetuning", ("cw3", None, "cw10")),
        ("EWC", "ewc", ("cw3", "cw6", "cw10")),
    ):
        expected = []
        for family in families:
            groups = [g for g in study.of(protocol, family) if g.method == method and family]
            score = scores.score(groups, "average_performance") if groups else None
            expected.append(number(score.value) if score else "–")
        assert rows[title][::3] == expected
