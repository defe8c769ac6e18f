"""Scores of groups against the same numbers taken another way."""

import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from cwbench.reports.analysis import metrics
from cwbench.reports.analysis.reference import Reference
from cwbench.reports.analysis.scores import Scores, align, run_end_values
from cwbench.reports.analysis.study import Study
from cwbench.store.runs import load_runs


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


def test_a_task_s_score_is_its_mean_over_the_last_evaluations(study: Study):
    """A task of two sequences, from the success rates themselves."""
    scores = Scores(study, study.protocols[0], resamples=50)
    groups = [g for g in study.groups if g.method == "finetuning" and g.family == "cw3"]
    task = next(task for task in groups[0].tasks if task in groups[1].tasks)
    positions = [(group, group.tasks.index(task)) for group in groups]
    ends = [
        group.success[:, :, -scores.window :].mean(2)[:, :, index] for group, index in positions
    ]  # [R, N] each
    want = {
        "average_performance": np.mean([end[:, -1] for end in ends]),
        "forgetting": np.mean(
            [end[:, index] - end[:, -1] for end, (_, index) in zip(ends, positions, strict=True)]
        ),
    }
    for metric, value in want.items():
        assert scores.task_score(positions, metric).value == pytest.approx(value)


def test_training_success_counts_when_a_run_has_ended(study: Study):
    """A run may have made all its steps and still be retraining, or have failed in the end."""
    [group] = [g for g in study.groups if (g.sequence, g.method) == ("cw3-1", "packnet")]
    first, *others = group.runs
    running = replace(group, runs=(replace(first, state="running"), *others), label="another")
    found = Scores(study, study.protocols[0]).per_run(running, "training_performance")
    assert np.isnan(found).tolist() == [True] + [False] * 4
    assert found[1:].tolist() == group.training[1:, 1:, -1].mean(1).tolist()


def test_the_window_that_was_asked_for_is_used(study: Study):
    asked = replace(study, options=replace(study.options, window=5))
    [group] = [g for g in study.groups if (g.sequence, g.method) == ("cw3-1", "ewc")]
    found = Scores(asked, study.protocols[0]).per_run(group, "average_performance")
    np.testing.assert_allclose(found, group.success[:, -1, -5:].mean((1, 2)))


def test_intervals_have_the_level_that_was_asked_for(study: Study):
    """The t interval of one sequence's mean is the textbook's; that of transfer gets wider."""
    [group] = [g for g in study.groups if (g.sequence, g.method) == ("cw3-1", "ewc")]
    usual = Scores(study, study.protocols[0], resamples=50)
    asked = replace(study, options=replace(study.options, level=0.99))
    wide = Scores(asked, study.protocols[0], resamples=50)
    runs = usual.per_run(group, "average_performance")
    for scores, level in ((usual, 0.9), (wide, 0.99)):
        found = scores.score([group], "average_performance").estimate
        want = stats.t.interval(level, 4, runs.mean(), stats.sem(runs))
        assert found.ends("t") == pytest.approx(want)
    one, other = (scores.score([group], "forward_transfer").estimate for scores in (usual, wide))
    assert other.t_low < one.t_low < one.t_high < other.t_high


def test_end_values_of_runs_are_means_over_the_last_evaluations(triplets: Path, study: Study):
    """As in tables: two of ten here."""
    found = run_end_values(load_runs(triplets))
    group = study.groups[0]
    for run, success in zip(group.runs, group.success, strict=True):
        np.testing.assert_allclose(found[run.name], success[-1, -2:].mean(0))


def test_a_seed_that_one_sequence_lacks_still_counts_on_the_others(study: Study):
    """Sequences with seeds 0, 1, 2 and 1, 2: columns 0, 1 and 2, two seeds on all."""
    first, second = (
        replace(g, runs=g.runs[start:3])
        for g, start in zip([g for g in study.groups if g.method == "ewc"], (0, 1), strict=True)
    )
    rows, seeds = align([first, second], [np.array([[0.1, 0.2, 0.3]]), np.array([[0.5, 0.6]])])
    np.testing.assert_array_equal(rows, [[0.1, 0.2, 0.3], [np.nan, 0.5, 0.6]])
    assert seeds == 2


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
