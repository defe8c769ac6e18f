"""Scores of groups against the same numbers taken another way."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

from cwbench.reports.analysis import metrics
from cwbench.reports.analysis.reference import Reference
from cwbench.reports.analysis.scores import Scores
from cwbench.reports.analysis.study import Study


def test_transfer_of_the_reference_method_is_zero_on_a_first_task(study: Study):
    """Fine-tuning's first task is the very segment that serves as reference."""
    [group] = [g for g in study.groups if (g.sequence, g.method) == ("cw3-1", "finetuning")]
    scores = Scores(study, study.protocols[0])
    assert scores.task_score([(group, 0)], "forward_transfer").value == pytest.approx(0)
    area = metrics.area(group.complete).mean(0)
    base = scores.reference_of(group).means(group.tasks)
    want = np.mean((area - base) / (1 - base))
    assert scores.score([group], "forward_transfer").value == pytest.approx(want)


@pytest.mark.parametrize("metric", ["negative_transfer", "area_gain", "later_transfer"])
def test_values_of_runs_average_to_the_score_where_a_metric_is_linear(study: Study, metric: str):
    """EWC shares no segment with the reference, so seeds are not paired."""
    [group] = [g for g in study.groups if (g.sequence, g.method) == ("cw3-1", "ewc")]
    scores = Scores(study, study.protocols[0], resamples=50)
    value = scores.score([group], metric).value
    assert scores.per_run(group, metric).mean() == pytest.approx(value)


def test_a_single_task_has_no_later_ones(study: Study):
    """NaN, and no warning of numpy's about the mean of nothing."""
    group = next(g for g in study.groups if g.sequence.startswith("single-"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = Scores(study, study.protocols[0]).per_run(group, "later_transfer")
    assert np.isnan(found).all() and len(found) == 5


def test_joint_training_has_no_transfer(study: Study):
    """Its one segment has no window of each task, and there is none to compare."""
    [group] = [g for g in study.groups if (g.sequence, g.method) == ("cw3-1", "ewc")]
    runs = tuple(replace(run, segments=run.segments[:1]) for run in group.runs)
    joint = replace(group, runs=runs)
    assert joint.joint
    scores = Scores(study, study.protocols[0])
    assert np.isnan(scores.per_run(joint, "forward_transfer")).all()


def test_transfer_against_a_perfect_reference_is_empty_and_says_why(study: Study):
    [group] = [g for g in study.groups if (g.sequence, g.method) == ("cw3-1", "ewc")]
    scores = Scores(study, study.protocols[0], resamples=50)
    known = scores.reference_of(group).curves
    perfect = {task: replace(one, success=np.ones_like(one.success)) for task, one in known.items()}
    scores._references[group.setup] = Reference(perfect)
    found = scores.score([group], "forward_transfer")
    assert np.isnan(found.value)
    assert found.why == "not defined: the reference solves a task at every evaluation"
