"""Which settings there are, and what they are called."""

from dataclasses import replace
from pathlib import Path

from sample_results import small, write_results

from cwbench.reports import build
from cwbench.reports.analysis.setups import all_settings, main_settings, titles
from cwbench.reports.analysis.study import Study


def test_a_method_keeps_its_colour(study: Study):
    groups = study.of(study.protocols[0], "cw3")
    [alone] = main_settings([group for group in groups if group.method == "recall"])
    assert alone.slot == main_settings(groups)[-1].slot


def test_methods_are_shown_with_their_defaults_where_these_were_run(tmp_path: Path):
    settings = [small("ewc"), small("ewc", coef=1.0), small("recall", coef=1.0)]
    write_results(tmp_path, sequence_names=["cw3-1", "cw3-2"], settings=settings, seeds=[0])
    groups = build.read(tmp_path).groups
    assert titles(all_settings(groups)) == ("EWC", "EWC coef=1", "RECALL coef=1")
    main = main_settings(groups)
    assert titles(main) == ("EWC", "RECALL coef=1")
    assert [[group.sequence for group in one.groups] for one in main] == [["cw3-1", "cw3-2"]] * 2


def test_a_tuned_setting_is_shown_next_to_the_default_that_was_tried_with_it(tmp_path: Path):
    """The default may have been run on the sequence of the choice only."""
    settings = [small("ewc"), small("ewc", coef=1.0), small("ewc", coef=2.0)]
    write_results(tmp_path, sequence_names=["cw3-1"], settings=settings, seeds=[0])
    groups = [
        replace(group, tuned_on=("cw3-2",)) if group.label == "ewc coef=1" else group
        for group in build.read(tmp_path).groups
    ]
    assert titles(main_settings(groups)) == ("EWC", "EWC coef=1, tuned on cw3-2")
