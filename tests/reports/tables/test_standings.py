"""Standings next to published numbers."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sample_results import small, write_results

from cwbench.reports import build
from cwbench.reports.analysis import stability
from cwbench.reports.analysis.scores import Scores
from cwbench.reports.analysis.study import Study
from cwbench.reports.tables.standings import (
    after_switch,
    against_transfer,
    aggregate_standings,
    published_points,
    rank_standings,
    verdict,
)


@pytest.fixture(scope="module")
def scores(study: Study) -> Scores:
    return Scores(study, study.protocols[0])


def test_published_points_are_means_over_the_sequences_at_hand(scores: Scores):
    """EWC on CW3-1 and CW3-2, straight from the published numbers."""
    found = {point.method: point for point in published_points(scores, "cw3")}
    rows = (Path(__file__).parents[3] / "reports/data/cw3.csv").read_text().splitlines()
    ewc = [
        float(row.split(",")[3])
        for row in rows
        if row.startswith(("1,ewc,average_p", "2,ewc,average_p"))
    ]
    assert found["EWC"].y[0] == pytest.approx(np.mean(ewc))
    assert found["EWC"].slot == -1


def test_our_points_have_transfer_across_and_performance_up(scores: Scores):
    points = against_transfer(scores, "cw3")
    [point] = [one for one in points if one.method == "ClonEx" and one.slot >= 0]
    groups = [g for g in scores.groups("cw3") if g.method == "clonex"]
    assert point.x[0] == scores.score(groups, "forward_transfer").value
    assert point.y[0] == scores.score(groups, "average_performance").value
    assert point.x[0] != point.y[0]


def test_aggregates_are_of_seeds_that_ended_on_all_sequences(tmp_path: Path):
    """Seed 2 has one of two sequences: it is in neither the aggregates nor in the curve."""
    ewc = [small("ewc")]
    write_results(tmp_path, sequence_names=["cw3-1", "cw3-2"], settings=ewc, seeds=[0, 1])
    write_results(tmp_path, sequence_names=["cw3-1"], settings=ewc, seeds=[2], name="b")
    study = build.read(tmp_path)
    scores = Scores(study, study.protocols[0], resamples=50)
    [found] = aggregate_standings(scores, "cw3", "mean")
    runs = [scores.per_run(g, "average_performance")[:2] for g in study.groups]
    assert found.seeds == 2 and found.estimate.value == pytest.approx(np.mean(runs))
    [setting] = scores.settings("cw3")
    curves = [stability.after_switch(g.complete[:2], scores.window).mean(0) for g in study.groups]
    np.testing.assert_allclose(after_switch(scores, setting).mean, np.mean(curves, axis=0))


def test_no_published_point_needs_an_impossible_cell(tmp_path: Path):
    """ClonEx's forward transfer on CW3-8 is outside its own interval; its CW3-7 is not."""
    for name, shown in ("cw3-7", True), ("cw3-8", False):
        root = tmp_path / name
        write_results(root, sequence_names=[name], settings=[small("ewc")], seeds=[0])
        study = build.read(root)
        found = published_points(Scores(study, study.protocols[0]), "cw3")
        titles = {point.method for point in found}
        assert "EWC" in titles and ("ClonEx" in titles) == shown


def test_one_seed_tells_no_methods_apart(tmp_path: Path):
    settings = [small("ewc"), small("recall"), small("finetuning")]
    write_results(tmp_path, sequence_names=["cw3-1"], settings=settings, seeds=[0])
    study = build.read(tmp_path)
    scores = Scores(study, study.protocols[0])
    found, [joined] = rank_standings(scores, "cw3")
    assert len(found) == len(joined) == 3
    assert verdict(scores, "cw3").endswith("; one seed says nothing about how sure that is.")


def tied(root: Path, seeds: list[int], *others: str) -> Scores:
    """EWC and RECALL succeed in nine episodes of ten everywhere, others in five."""
    settings = map(small, ("ewc", "recall", *others))
    write_results(root, sequence_names=["cw3-1"], settings=settings, seeds=seeds)
    for file in root.glob("segments/*/evals.csv"):
        rate = 0.9 if file.parent.name.startswith(("ewc", "recall")) else 0.5
        evals = pd.read_csv(file)
        evals.assign(successes=(rate * evals["episodes"]).astype(int)).to_csv(file, index=False)
    study = build.read(root)
    return Scores(study, study.protocols[0])


def test_the_verdict_names_all_that_tie(tmp_path: Path):
    assert verdict(tied(tmp_path / "one", [0], "finetuning"), "cw3") == (
        "CW3: EWC and RECALL have the highest average performance, 0.90 each; one seed says "
        "nothing about how sure that is."
    )
    assert verdict(tied(tmp_path / "two", [0, 1], "finetuning"), "cw3") == (
        "CW3: EWC and RECALL have the highest average performance, 0.90 each "
        "(EWC [0.90, 0.90], n = 2 seeds; RECALL [0.90, 0.90], n = 2 seeds); "
        "by these intervals no other may be as good."
    )


def test_the_verdict_names_methods_whose_intervals_overlap(tmp_path: Path):
    """Below the best mean, 0.8, but not below its interval."""
    settings = map(small, ("ewc", "recall", "finetuning"))
    write_results(tmp_path, sequence_names=["cw3-1"], settings=settings, seeds=[0, 1, 2])
    rates = {"ewc": 0.8, "recall": 0.6, "finetuning": 0.1}
    for record in build.read(tmp_path).segments.values():
        file = tmp_path / "segments" / record["folder"] / "evals.csv"
        rate = rates[record["method"]] + (record["seed"] - 1) / 10
        evals = pd.read_csv(file)
        evals["successes"] = (rate * evals["episodes"]).round().astype(int)
        evals.to_csv(file, index=False)
    study = build.read(tmp_path)
    said = verdict(Scores(study, study.protocols[0]), "cw3")
    assert said.startswith("CW3: EWC has the highest average performance, 0.80 [")
    assert said.endswith("; by these intervals RECALL may be as good.")


def test_the_verdict_on_equal_methods_names_no_best(tmp_path: Path):
    said = verdict(tied(tmp_path, [0, 1]), "cw3")
    assert said == "CW3: EWC and RECALL have the same average performance, 0.90."


def test_a_method_alone_has_no_rank(tmp_path: Path):
    write_results(tmp_path, sequence_names=["cw3-1"], settings=[small("ewc")], seeds=[0, 1])
    [(_, _, table)] = build.tables_of(build.read(tmp_path), "cw3-aggregates")
    [(_, cells)] = table.blocks[0].rows
    assert [cell.empty for cell in cells] == [False, False, False, False, True]
    assert cells[-1].why == "ranks need two methods"


def test_the_verdict_names_methods_with_one_seed(tmp_path: Path):
    for method, seeds in (("recall", [0, 1, 2]), ("finetuning", [0, 1, 2]), ("ewc", [0])):
        write_results(
            tmp_path, sequence_names=["cw3-1"], settings=[small(method)], seeds=seeds, name=method
        )
    study = build.read(tmp_path)
    said = verdict(Scores(study, study.protocols[0]), "cw3")
    assert said.startswith("CW3: RECALL has the highest average performance, ")
    assert said.endswith(" may be as good, and one seed cannot tell of EWC.")


def test_the_verdict_says_that_methods_lack_sequences(tmp_path: Path):
    for methods, names in ((["ewc", "finetuning"], ["cw3-1", "cw3-2"]), (["recall"], ["cw3-1"])):
        write_results(
            tmp_path, sequence_names=names, settings=map(small, methods), seeds=[0], name=methods[0]
        )
    study = build.read(tmp_path)
    said = verdict(Scores(study, study.protocols[0]), "cw3")
    assert " has the highest average performance of the 2 methods with all sequences, " in said


def test_aggregates_and_ranks_count_the_seeds_they_use(tmp_path: Path):
    """EWC has two of fine-tuning's three seeds: ranks are those of two."""
    for method, seeds in (("finetuning", [0, 1, 2]), ("ewc", [0, 1])):
        write_results(
            tmp_path, sequence_names=["cw3-1"], settings=[small(method)], seeds=seeds, name=method
        )
    study = build.read(tmp_path)
    said = verdict(Scores(study, study.protocols[0]), "cw3")
    assert f"n = {3 if 'Fine-tuning has' in said else 2} seeds; by these intervals" in said
    [(_, _, table)] = build.tables_of(study, "cw3-aggregates")
    found = {
        title: [cell.score.seeds for cell in cells if cell.score]
        for title, cells in table.blocks[0].rows
    }
    assert found == {"Fine-tuning": [3, 3, 3, 3, 2], "EWC": [2, 2, 2, 2, 2]}


def test_the_verdict_counts_the_seeds_of_the_sequence_with_the_fewest(tmp_path: Path):
    """As the table's mean does: five seeds on one sequence, three on the other."""
    settings = [small("recall"), small("finetuning")]
    for name, seeds in (("cw3-1", range(5)), ("cw3-2", range(1, 4))):
        write_results(tmp_path, sequence_names=[name], settings=settings, seeds=seeds, name=name)
    study = build.read(tmp_path)
    assert ", n = 3 seeds; " in verdict(Scores(study, study.protocols[0]), "cw3")
    [(_, _, table)] = build.tables_of(study, "cw3")
    assert {cell.seeds for cell in dict(table.blocks[0].rows)["mean"]} == {3}
