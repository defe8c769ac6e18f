"""Comparisons of two methods against numbers taken another way."""

from pathlib import Path

import numpy as np
import pytest
from sample_results import small, write_results

from cwbench.reports import build
from cwbench.reports.analysis.scores import Scores
from cwbench.reports.analysis.study import Options, Study
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
