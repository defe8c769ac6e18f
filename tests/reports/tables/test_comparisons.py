"""Comparisons of two methods against numbers taken another way."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sample_results import singles, small, write_results

from cwbench import sequences
from cwbench.reports import build
from cwbench.reports.analysis import comparison
from cwbench.reports.analysis.scores import Scores
from cwbench.reports.analysis.study import Options, Study
from cwbench.reports.figures.differences import differences
from cwbench.reports.figures.standings import ranks
from cwbench.reports.page import matrices
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
    assert rows(Options(against="EWC")) == against  # as --method


def test_two_versions_of_the_one_compared_against_are_one_pair(tmp_path: Path):
    settings = [small("Drift", source=code) for code in ("1a2b3c4d5e6f", "9f8e7d6c5b4a")]
    settings.append(small("ewc"))
    write_results(tmp_path, sequence_names=["cw3-1"], settings=settings, seeds=[0, 1])
    study = build.read(tmp_path, Options(against="Drift"))
    [(_, _, table)] = build.tables_of(study, "cw3-comparison-performance")
    old, new = "Drift (1a2b)", "Drift (9f8e)"
    rows = [name for name, _ in table.blocks[0].rows]
    assert sorted(rows) == sorted([f"EWC - {old}", f"EWC - {new}", f"{new} - {old}"])


def test_a_pair_holds_the_difference_of_means_and_p_values_are_adjusted(study: Study):
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


def test_a_row_against_its_formulas(study: Study):
    """Forgetting is better if it is less; intervals and seeds needed are of the level asked for."""
    asked = replace(study, options=replace(study.options, level=0.8))
    scores = Scores(asked, study.protocols[0], resamples=50)
    [block] = comparisons.comparisons(scores, "cw3", "forgetting")
    found = {f"{p.second} - {p.first}": p for p in comparisons.pairs(scores, "cw3", "forgetting")}
    rows = dict(block.rows)
    assert rows["PackNet - EWC"][0].value < 0 and rows["PackNet - EWC"][3].value > 0.8
    for name, (_, _, _, better, _, needed) in rows.items():
        pair = found[name]
        want = comparison.improvement_estimate(-pair.b, -pair.a, 0.8)
        assert better.score and better.score.estimate == want
        spread = float(np.std(pair.differences, ddof=1))
        assert needed.text == str(comparison.seeds_needed(0.05, spread, level=0.8))


def test_seeds_are_matched_by_their_numbers(tmp_path: Path):
    """EWC has seeds 0 to 2, RECALL 1 to 3: the pair has 1 and 2 of both."""
    for method, seeds in (("ewc", [0, 1, 2]), ("recall", [1, 2, 3])):
        write_results(
            tmp_path, sequence_names=["cw3-1"], settings=[small(method)], seeds=seeds, name=method
        )
    study = build.read(tmp_path)
    scores = Scores(study, study.protocols[0], resamples=50)
    [pair] = comparisons.pairs(scores, "cw3", "average_performance")
    runs = {g.method: scores.per_run(g, "average_performance") for g in study.groups}
    np.testing.assert_allclose(pair.differences, runs["recall"][:2] - runs["ewc"][1:])


def test_one_seed_is_not_tested(tmp_path: Path):
    for method, seeds in (("ewc", [0, 1, 2]), ("finetuning", [0, 1, 2]), ("recall", [0])):
        write_results(
            tmp_path, sequence_names=["cw3-1"], settings=[small(method)], seeds=seeds, name=method
        )
    study = build.read(tmp_path)
    [(_, _, table)] = build.tables_of(study, "cw3-comparison-performance")
    tests = {name: [cell.text for cell in cells[1:3]] for name, cells in table.blocks[0].rows}
    assert [texts for name, texts in tests.items() if "RECALL" in name] == [["–", "–"]] * 2
    [tested] = [texts for name, texts in tests.items() if "RECALL" not in name]
    assert tested[0] == tested[1]  # not adjusted for pairs that are not tested


def apart(root: Path) -> Scores:
    """EWC and RECALL share two seeds on each of two sequences, and none on both."""
    settings = [small("ewc"), small("recall")]
    for name, seeds in (("cw3-1", [0, 1]), ("cw3-2", [2, 3])):
        write_results(root, sequence_names=[name], settings=settings, seeds=seeds, name=name)
    study = build.read(root)
    return Scores(study, study.protocols[0], resamples=50)


def test_a_pair_without_a_whole_seed_keeps_its_row_and_says_why(tmp_path: Path):
    scores = apart(tmp_path)
    [(name, cells)] = comparisons.comparisons(scores, "cw3", "average_performance")[0].rows
    why = "no seed has ended with both on all shared sequences"
    assert (name, cells[0].why, cells[4].text) == ("RECALL - EWC", why, "0")
    assert cells[3].empty and cells[3].why == why
    assert comparisons.pairs(scores, "cw3", "average_performance") == []
    assert why in matrices.differences(scores, "cw3")
    [axis] = differences(scores, ["cw3"]).axes
    assert " ".join(axis.texts[0].get_text().split()) == why
    [axis] = ranks(scores, ["cw3"]).axes
    assert "no seed has ended with every method" in " ".join(axis.texts[0].get_text().split())


def test_pairs_that_have_not_begun_are_in_no_table(tmp_path: Path):
    settings = [small("ewc"), small("recall")]
    write_results(tmp_path, sequence_names=["cw3-1"], settings=settings, seeds=[0], upto=0.5)
    study = build.read(tmp_path)
    [block] = comparisons.comparisons(
        Scores(study, study.protocols[0]), "cw3", "average_performance"
    )
    assert block.rows == ()


def test_a_sequence_without_transfer_is_left_out_of_a_comparison(tmp_path: Path):
    """CW3-1 alone has a reference for its tasks; the mean over both sequences has none."""
    settings = [small("ewc"), small("recall")]
    names = ["cw3-1", "cw3-2"]
    write_results(tmp_path, sequence_names=names, settings=settings, seeds=[0, 1])
    alone = singles(sequences.get("cw3-1").tasks)
    reference = [small("finetuning")]
    write_results(tmp_path, sequence_names=alone, settings=reference, seeds=[0, 1], name="alone")
    study = build.read(tmp_path)
    scores = Scores(study, study.protocols[0], resamples=50)
    [(_, (difference, *_))] = comparisons.comparisons(scores, "cw3", "forward_transfer")[0].rows
    first = {g.method: g for g in study.of(scores.protocol, "cw3") if g.sequence == "cw3-1"}
    a, b = (scores.per_run(first[name], "forward_transfer") for name in ("ewc", "recall"))
    assert difference.value == pytest.approx((b - a).mean())
    assert difference.why == "over the 1 of 2 shared sequences with forward transfer"
    captions = {name: table.caption for name, _, table in build.tables_of(study)}
    said = [
        name for name, caption in captions.items() if "Sequences without it are left out" in caption
    ]
    assert said == ["cw3-comparison-transfer"]


def test_a_method_without_a_finished_run_is_in_no_pair(tmp_path: Path):
    names = ["cw3-1"]
    settings = [small("ewc"), small("recall")]
    write_results(tmp_path, sequence_names=names, settings=settings, seeds=[0])
    write_results(
        tmp_path, sequence_names=names, settings=[small("l2")], seeds=[0], name="b", upto=0.5
    )
    study = build.read(tmp_path)
    [block] = comparisons.comparisons(
        Scores(study, study.protocols[0]), "cw3", "average_performance"
    )
    [(name, cells)] = block.rows
    assert name == "RECALL - EWC" and {cells[i].text for i in (1, 2, 5)} == {"–"}
