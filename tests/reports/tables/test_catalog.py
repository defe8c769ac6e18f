"""Which tables there are, with which captions and footers."""

from pathlib import Path

from cwbench.reports import build
from cwbench.reports.analysis.scores import Scores
from cwbench.reports.analysis.study import Options
from cwbench.reports.tables import catalog


def test_the_hash_follows_the_numbers(triplets: Path):
    study = build.read(triplets)
    wide = build.read(triplets, Options(window=3))
    footers = []
    for one in (study, study, wide):
        scores = Scores(one, one.protocols[0])
        entry = next(catalog.entries(scores))
        footers.append(catalog.make(scores, entry).footer["hash"])
    assert footers[0] == footers[1] != footers[2]


def test_the_bound_of_the_sign_flip_test_is_that_of_the_seeds_at_hand(triplets: Path):
    study = build.read(triplets)
    scores = Scores(study, study.protocols[0])
    entry = catalog.find(scores, "cw3-comparison-performance")
    assert entry is not None and "with 5 seeds it cannot go below 0.0625" in entry.caption
