"""Scores of groups against the same numbers taken another way."""

import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cwbench.reports import build
from cwbench.reports.analysis import metrics
from cwbench.reports.analysis.reference import Reference
from cwbench.reports.analysis.scores import Scores


def test_transfer_of_the_reference_method_is_zero_on_a_first_task(triplets: Path):
    """Fine-tuning's first task is the very segment that serves as reference."""
    study = build.read(triplets)
    [group] = [g for g in study.groups if (g.sequence, g.method) == ("cw3-1", "finetuning")]
    scores = Scores(study, study.protocols[0])
    assert scores.task_score([(group, 0)], "forward_transfer").value == pytest.approx(0)
    area = metrics.area(group.complete).mean(0)
    base = scores.reference_of(group).means(group.tasks)
    want = np.mean((area - base) / (1 - base))
    assert scores.score([group], "forward_transfer").value == pytest.approx(want)


@pytest.mark.parametrize("metric", ["negative_transfer", "area_gain", "later_transfer"])
def test_values_of_runs_average_to_the_score_where_a_metric_is_linear(triplets: Path, metric: str):
    """EWC shares no segment with the reference, so seeds are not paired."""
    study = build.read(triplets)
    [group] = [g for g in study.groups if (g.sequence, g.method) == ("cw3-1", "ewc")]
    scores = Scores(study, study.protocols[0], resamples=50)
    value = scores.score([group], metric).value
    assert scores.per_run(group, metric).mean() == pytest.approx(value)


def test_a_single_task_has_no_later_ones(triplets: Path):
    """NaN, and no warning of numpy's about the mean of nothing."""
    study = build.read(triplets)
    group = next(g for g in study.groups if g.sequence.startswith("single-"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = Scores(study, study.protocols[0]).per_run(group, "later_transfer")
    assert np.isnan(found).all() and len(found) == 5


def test_joint_training_has_no_transfer(triplets: Path):
    """Its one segment has no window of each task, and there is none to compare."""
    study = build.read(triplets)
    [group] = [g for g in study.groups if (g.sequence, g.method) == ("cw3-1", "ewc")]
    runs = tuple(replace(run, segments=run.segments[:1]) for run in group.runs)
    joint = replace(group, runs=runs)
    assert joint.joint
    scores = Scores(study, study.protocols[0])
    assert np.isnan(scores.per_run(joint, "forward_transfer")).all()


def test_transfer_against_a_perfect_reference_is_empty_and_says_why(triplets: Path):
    study = build.read(triplets)
    [group] = [g for g in study.groups if (g.sequence, g.method) == ("cw3-1", "ewc")]
    scores = Scores(study, study.protocols[0], resamples=50)
    known = scores.reference_of(group).curves
    perfect = {task: replace(one, success=np.ones_like(one.success)) for task, one in known.items()}
    scores._references[group.setup] = Reference(perfect)
    found = scores.score([group], "forward_transfer")
    assert np.isnan(found.value)
    assert found.why == "not defined: the reference solves a task at every evaluation"
