"""The checklist says what the records say."""

import json
from pathlib import Path

from sample_results import small, write_results

from cwbench.reports import build
from cwbench.reports.analysis.provenance import steps_and_seconds
from cwbench.reports.analysis.scores import Scores
from cwbench.reports.analysis.study import Options
from cwbench.reports.checklist import checklist


def test_it_counts_what_was_run(tmp_path: Path):
    write_results(tmp_path, sequence_names=["cw3-1"], settings=[small("ewc")], seeds=range(2))
    text = checklist(build.read(tmp_path))
    # Two seeds of three tasks with 10,000 steps each, at a millisecond a step.
    assert "6 segments, 60k training steps, 1.0 min of wall time" in text
    assert "Seeds per number: 2." in text
    assert "steps_per_task 10000" in text and "Methods: EWC. Sequences: CW3-1." in text
    assert "metaworld 3.1.1" in text
    assert "`cwbench run --method ewc --seq cw3-1 --seeds 1`" in text
    assert "failed or diverged and are in no mean: 0" in text


def test_it_counts_what_was_chosen(tmp_path: Path):
    settings = [small("ewc"), small("recall")]
    write_results(tmp_path, sequence_names=["cw3-1"], settings=settings, seeds=range(2))
    text = checklist(build.read(tmp_path, Options(methods=("ewc",))))
    assert "6 segments, 60k training steps" in text and "Methods: EWC. " in text
    assert "Only ewc." in text and "--method recall" not in text


def test_names_are_no_html_and_commands_stay_as_they_are(tmp_path: Path):
    settings = [small("ewc"), small("ewc<script>", coef=1.0)]
    write_results(tmp_path, sequence_names=["cw3-1"], settings=settings, seeds=[0])
    for file in tmp_path.glob("segments/ewc<*-s0-*/segment.json"):
        record = json.loads(file.read_text()) | {"command": "cwbench run --method '`a`|<b>'"}
        file.write_text(json.dumps(record))
    study = build.read(tmp_path, Options(methods=("ewc", "ewc<*")))
    study.problems.append("something about <b>")
    lines = checklist(study).splitlines()
    assert [line for line in lines if "<" in line] == ["* `` cwbench run --method '`a`|<b>' ``"]
    text = "\n".join(lines)
    assert "Only ewc, ewc&lt;*." in text and "about &lt;b>" in text
    assert "EWC, Ewc&lt;script>" in text and "* `cwbench run --method ewc --seq cw3-1" in text


def test_runs_that_have_not_ended_are_counted(tmp_path: Path):
    """Even where nothing is wrong with them."""
    write_results(tmp_path / "all", sequence_names=["cw3-1"], settings=[small("ewc")])
    assert "* Nothing: every run has ended" in checklist(build.read(tmp_path / "all"))
    some = write_results(
        tmp_path / "some", sequence_names=["cw3-1"], settings=[small("ewc")], upto=0.5
    )
    text = checklist(build.read(some))
    assert "not ended and are in no mean: 5 of 5." in text and "Nothing:" not in text


def test_an_empty_study_has_a_checklist_too(tmp_path: Path):
    assert "holds no runs" in checklist(build.read(tmp_path))


def test_the_choice_of_options_and_its_cost_are_named(with_orders: Scores):
    said = checklist(with_orders.study)
    assert "Options of EWC on cw3-1: chosen by highest mean area; 8 runs, 240,000" in said


def test_steps_and_seconds_are_summed_over_segments() -> None:
    """A segment that has not begun, or of an old version, has none."""
    done = {"resources": {"train_steps": 300}, "seconds": 1.5}
    records = [{"status": status} for status in (done, done, {"resources": None}, {})]
    assert steps_and_seconds(records) == (600, 3.0)
