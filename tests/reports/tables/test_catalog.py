"""Which tables there are, with which captions and footers."""

from pathlib import Path

import pandas as pd
import pytest
from sample_results import small, write_results

from cwbench.reports import build
from cwbench.reports.analysis.scores import Scores
from cwbench.reports.analysis.study import Options, Protocol, Study
from cwbench.reports.tables import catalog, formats
from cwbench.reports.tables.verify import recipe_of, recipe_options, sign, verify
from cwbench.spec.config import MetaWorldConfig


def test_the_hash_follows_the_numbers(triplets: Path):
    study = build.read(triplets)
    wide = build.read(triplets, Options(window=3))
    footers = []
    for one in (study, study, wide):
        scores = Scores(one, one.protocols[0])
        entry = next(catalog.entries(scores))
        footers.append(catalog.make(scores, entry).footer["hash"])
    assert footers[0] == footers[1] != footers[2]


def test_the_footer_counts_runs_that_have_their_end_values(tmp_path: Path):
    write_results(tmp_path, sequence_names=["cw3-1"], settings=[small("ewc")], seeds=range(3))
    [file] = tmp_path.glob("segments/ewc-3-*-s0-*/evals.csv")
    file.write_text("".join(file.read_text().splitlines(keepends=True)[:-1]))
    scores = Scores(study := build.read(tmp_path), study.protocols[0])
    table = catalog.make(scores, next(catalog.entries(scores)))
    assert table.footer["seeds"] == "n = 2 seeds"


def test_the_footer_names_options_that_are_not_the_protocols(tmp_path: Path):
    """Other than those that every footer says, as reward, steps and evaluations."""
    settings = small("ewc", env=MetaWorldConfig(reward="v2", unstable="hold"))
    write_results(tmp_path, sequence_names=["cw3-1"], settings=[settings], seeds=[0])
    [(_, _, table)] = build.tables_of(build.read(tmp_path), "cw3")
    said = "Protocol paper, unstable hold: 10000 steps a task, evaluated every 1000 with"
    assert table.footer["protocol"].startswith(said)
    assert "reward v2" in table.footer["environment"]


def test_the_bound_of_the_sign_flip_test_is_that_of_the_seeds_at_hand(study: Study):
    scores = Scores(study, study.protocols[0])
    entry = catalog.find(scores, "cw3-comparison-performance")
    assert entry is not None and "with 5 seeds it cannot go below 0.0625" in entry.caption


def test_the_bound_of_the_sign_flip_test_is_that_of_the_seeds_that_are_compared(tmp_path: Path):
    """EWC has three of RECALL's five seeds."""
    for method, seeds in (("recall", 5), ("ewc", 3)):
        settings = [small(method)]
        write_results(
            tmp_path, sequence_names=["cw3-1"], settings=settings, seeds=range(seeds), name=method
        )
    [(_, _, table)] = build.tables_of(build.read(tmp_path), "cw3-comparison-performance")
    assert "with 3 seeds it cannot go below 0.25." in table.caption


@pytest.mark.parametrize("seeds", [[0], [0, 1]])
def test_the_caption_says_why_a_number_has_no_brackets(tmp_path: Path, seeds: list[int]):
    """Where others have them: RECALL has two seeds, EWC one or two."""
    for name, method, own in (("a", "recall", [0, 1]), ("b", "ewc", seeds)):
        write_results(
            tmp_path, sequence_names=["cw3-1"], settings=[small(method)], seeds=own, name=name
        )
    for _, _, table in build.tables_of(build.read(tmp_path), "cw3"):
        for write in (formats.latex, formats.markdown):
            said = "have ended. Without brackets: one seed." in write(table)
            assert said == (seeds == [0])


def test_published_numbers_are_next_to_runs_counted_as_they_were(counted: Path):
    def table(success: str | None = None) -> tuple[str, str]:
        [(_, scores, made)] = build.tables_of(
            build.read(counted, Options(success=success)), "paper-cw3"
        )
        text = sign(scores, made, "csv", "bootstrap")
        again = build.read(counted, recipe_options(recipe_of(text)))
        assert verify(text, again).differences == []
        return made.caption, text

    default, v1, v3 = table(), table("v1-any"), table("v3-any")
    assert "success by Meta-World V1's test at any step (v1-any)" in default[0]
    assert default == v1 and "(v3-any)" in v3[0] and v3[1] != v1[1]
    [(_, _, own)] = build.tables_of(build.read(counted), "cw3")
    assert "(v3-any)" in own.footer["environment"]
    # One file without the other counts: numbers counted differently never stand in one table.
    file = next(counted.glob("segments/*/evals.csv"))
    pd.read_csv(file).drop(columns="v1_any").to_csv(file, index=False)
    assert table()[0] == v3[0]


def test_captions_name_the_range_where_tasks_differ_in_horizon():
    tasks = [{"name": name, "horizon": steps} for name, steps in (("a", 20), ("b", 200))]
    defined = Protocol("paper", {"suite": "gymnasium", "horizon": 200, "tasks": tasks}, {})
    assert catalog._horizon(defined, ["a", "b"]) == "horizons 20 to 200"
    assert catalog._horizon(defined, ["b"]) == "horizon 200"
    assert catalog._horizon(Protocol("paper", {"horizon": 500}, {}), ["push"]) == "horizon 500"


def test_names_of_published_tables_are_known_without_runs(tmp_path: Path):
    names = ["cw3-1", "cw6-1", "cw10", "cw20", "pair-5-0"]
    write_results(tmp_path, sequence_names=names, settings=[small("recall")], seeds=[0])
    study = build.read(tmp_path)
    found = catalog.all_published(Scores(study, study.protocols[0]))
    assert {entry.name for entry in found} == catalog.published_names()
