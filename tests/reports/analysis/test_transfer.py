"""Measures of transfer against the reference's numbers."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sample_results import singles, small, write_results

from cwbench import sequences
from cwbench.reports import build
from cwbench.reports.analysis import metrics
from cwbench.reports.analysis.scores import Scores
from cwbench.reports.analysis.study import Group
from cwbench.reports.analysis.transfer import TRANSFER, statistic

TASKS = sequences.get("cw3-1").tasks


def read(results: Path) -> Scores:
    study = build.read(results)
    return Scores(study, study.protocols[0])


def with_reference(
    results: Path, methods: Sequence[str], *, seeds: int, reference: int
) -> tuple[Scores, list[Group]]:
    """Runs on CW3-1 and single-task runs, of which fine-tuning's first task is one."""
    settings = [small(method) for method in methods]
    write_results(results, sequence_names=["cw3-1"], settings=settings, seeds=range(seeds))
    write_results(
        results,
        sequence_names=singles(TASKS),
        settings=[small("finetuning")],
        name="reference",
        seeds=range(reference),
    )
    scores = read(results)
    return scores, scores.study.of(scores.protocol, "cw3")


def test_a_segment_that_serves_both_sides_is_paired(tmp_path: Path):
    """Fine-tuning's first task is the single-task run: no transfer, and no doubt about it."""
    scores, [group] = with_reference(tmp_path, ["finetuning"], seeds=2, reference=5)
    first = scores.task_score([(group, 0)], "forward_transfer").estimate
    assert (first.value, *first.ends()) == pytest.approx((0, 0, 0))
    later = scores.task_score([(group, 1)], "forward_transfer").estimate
    assert later.high > later.low


def test_single_runs_average_to_the_score(tmp_path: Path):
    """Where a segment serves both sides, single runs gain nothing there, as the score does."""
    scores, groups = with_reference(tmp_path, ["finetuning", "ewc"], seeds=4, reference=2)
    for group in groups:
        runs = scores.per_run(group, "forward_transfer")
        assert runs.mean() == pytest.approx(scores.score([group], "forward_transfer").value)


@pytest.mark.parametrize("seeds", [0, 2])
def test_single_runs_without_the_first_task_average_to_the_score(tmp_path: Path, seeds: int):
    """However few reference runs, or none, the first task has: it does not count."""
    write_results(tmp_path, sequence_names=["cw3-1"], settings=[small("ewc")], seeds=range(4))
    for task, count in zip(TASKS, (seeds, 5, 5), strict=True):
        write_results(
            tmp_path,
            sequence_names=singles([task]),
            settings=[small("finetuning")],
            name=f"reference-{task}",
            seeds=range(count),
        )
    scores = read(tmp_path)
    [group] = scores.study.of(scores.protocol, "cw3")
    score, runs = scores.score([group], "later_transfer"), scores.per_run(group, "later_transfer")
    assert not np.isnan(score.value)
    assert runs.mean() == pytest.approx(score.value)


def test_pairing_takes_no_seeds_from_a_method_and_gives_none_to_the_reference(tmp_path: Path):
    scores, [group] = with_reference(tmp_path, ["finetuning"], seeds=5, reference=2)
    score = scores.score([group], "forward_transfer")
    assert score.seeds == 5  # all have ended
    assert score.estimate.freedom == pytest.approx(1)  # two reference seeds


def test_one_reference_seed_gives_no_interval_and_says_so(tmp_path: Path):
    scores, [group] = with_reference(tmp_path, ["ewc"], seeds=3, reference=1)
    score = scores.score([group], "forward_transfer")
    assert np.isnan(score.estimate.low) and score.why == "one seed: no interval"


def test_other_measures_of_transfer(tmp_path: Path, shipped: Path):
    results = tmp_path / "results"
    write_results(results, sequence_names=["cw3-1"], settings=[small("ewc")], seeds=range(2))
    scores = read(results)
    groups = scores.study.groups
    area = metrics.area(groups[0].success).mean(0)
    end = np.einsum("rkk->rk", metrics.end_values(groups[0].success, scores.window)).mean(0)
    want: dict[str, Any] = {
        "forward_transfer": np.mean((area - 0.5) / 0.5),
        "later_transfer": np.mean((area[1:] - 0.5) / 0.5),
        "area_gain": np.mean(area - 0.5),
        "negative_transfer": np.mean(0.5 - end),
    }
    for metric, value in want.items():
        assert scores.score(groups, metric).value == pytest.approx(value)


def test_a_shared_first_task_gains_nothing_where_the_reference_is_cut(tmp_path: Path):
    """Of its five seeds three are used: those that serve both come before the others."""
    first, *others = singles(TASKS[:1]) + singles(TASKS[1:])
    for name, sequence_names, seeds in (
        ("first", [first], range(5)),
        ("others", others, range(3)),
        ("ours", ["cw3-1"], [3, 4]),
    ):
        settings = [small("finetuning")]
        write_results(
            tmp_path, sequence_names=sequence_names, settings=settings, seeds=seeds, name=name
        )
    scores = read(tmp_path)
    [group] = scores.study.of(scores.protocol, "cw3")
    transfer, later = (scores.score([group], f"{name}_transfer") for name in ("forward", "later"))
    assert transfer.value == pytest.approx(later.value * 2 / 3, abs=1e-12)


def test_a_mean_over_sequences_is_the_mean_of_their_scores(tmp_path: Path):
    """Each sequence has the reference seeds of its own tasks, however few other tasks have."""
    settings = [small("finetuning"), small("ewc")]
    write_results(tmp_path, sequence_names=["cw3-1", "cw3-2", "cw3-6"], settings=settings)
    tasks = [task for n in (1, 2, 6) for task in sequences.get(f"cw3-{n}").tasks]
    for task, seeds in zip(dict.fromkeys(tasks), (5, 4, 5, 2, 3, 5), strict=True):
        write_results(
            tmp_path,
            sequence_names=[f"single-{task}"],
            settings=[small("finetuning")],
            seeds=range(seeds),
            name=task,
        )
    scores = read(tmp_path)
    for method in ("finetuning", "ewc"):
        groups = [g for g in scores.study.of(scores.protocol, "cw3") if g.method == method]
        for metric in TRANSFER:
            rows = [scores.score([group], metric).value for group in groups]
            mean = scores.score(groups, metric)
            assert mean.value == pytest.approx(np.mean(rows), abs=1e-12)
            assert mean.estimate.low < mean.value < mean.estimate.high


def test_the_sequence_with_fewest_reference_seeds_decides_how_sure_a_mean_is(tmp_path: Path):
    """CW3-1's tasks have two seeds, CW3-3's three others: five that can be resampled."""
    write_results(tmp_path, sequence_names=["cw3-1", "cw3-3"], settings=[small("ewc")])
    for name, seeds in (("cw3-1", range(2)), ("cw3-3", range(2, 5))):
        tasks = singles(sequences.get(name).tasks)
        write_results(
            tmp_path, sequence_names=tasks, settings=[small("finetuning")], seeds=seeds, name=name
        )
    scores = read(tmp_path)
    groups = scores.study.of(scores.protocol, "cw3")
    parts = [[(group, index) for index in range(3)] for group in groups]
    _, resampled, fewest, ours = statistic(
        parts, scores.reference_of(groups[0]), TRANSFER["forward_transfer"], scores.window
    )
    assert (resampled, fewest, ours) == ([5, 5], [5, 2], 5)
