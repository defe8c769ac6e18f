"""What a setting has changed, from its label and its record."""

from pathlib import Path
from typing import Any

import pytest
from sample_results import write_runs

from cwbench import sequences
from cwbench.experiment.build import load_method, runs_of
from cwbench.methods import METHODS
from cwbench.planning.plan import Run
from cwbench.reports import build
from cwbench.reports.analysis.changes import changed, full_title
from cwbench.reports.analysis.study import Study
from cwbench.spec.config import PROTOCOLS


def run_of(name: str, protocol: str, **given: Any) -> Run:
    method, entry = load_method(name)
    point3 = [sequences.get("point3")]
    return runs_of(name, method, entry, protocol, given, wanted=point3, seeds=[0])[0]


def study_of(root: Path, run: Run, name: str) -> Study:
    return build.read(write_runs(root, [run], load_method(name)[1].method.preset))


@pytest.mark.parametrize("protocol", ["componet", "demo", "smoke"])
def test_nothing_is_changed_by_default(protocol: str, tmp_path: Path):
    """Whatever protocol, variant and preset set, and also in networks less deep than RECALL's."""
    for name in METHODS:
        study = study_of(tmp_path / name, run_of(name, protocol), name)
        variant = METHODS[name].base is not None
        assert changed(study, study.groups[0]) == ({name} if variant else set())
    assert PROTOCOLS["componet"]["layers"] == 2


def test_what_a_protocol_from_a_file_sets_is_changed_next_to_published_numbers(tmp_path: Path):
    """Labels leave it out, as they do what other protocols set."""
    file = tmp_path / "mylab.toml"
    file.write_text('base = "smoke"\n[options]\ngamma = 0.95\nwidth = 16')
    run = run_of("recall", str(file), lr=0.01)
    study = study_of(tmp_path / "results", run, "recall")
    [group] = study.groups
    assert group.title == "RECALL (lr=0.01)"
    assert {"lr", "gamma", "width"} <= changed(study, group)
    assert "gamma=0.95, width=16" in full_title(study, group)


def test_changed_options_are_found_with_and_without_a_label_that_names_them(tmp_path: Path):
    run = run_of("recall", "smoke", lambda_=1.0, critic_head_layers=1, lr=0.01)
    assert run.label == "recall (lambda=1.0, lr=0.01, critic-head-layers=1)"
    old = type(run)(run.sequence, run.tasks, "recall (lambda=1.0)", run.protocol, run.segments)
    titles = []
    for number, one in enumerate((run, old)):
        study = study_of(tmp_path / str(number), one, "recall")
        [group] = study.groups
        assert changed(study, group) == {"lambda", "lr", "critic-head-layers"}
        titles.append(full_title(study, group))
    assert titles == [
        "RECALL (lambda=1.0, lr=0.01, critic-head-layers=1)",
        "RECALL (lambda=1.0) with lr=0.01, critic-head-layers=1",
    ]
