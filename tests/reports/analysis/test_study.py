"""Protocols, and groups of runs that have not all ended."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sample_results import small, write_results, write_runs

from cwbench.experiment.build import load_method, runs_of
from cwbench.reports import build
from cwbench.reports.analysis.study import Protocol
from cwbench.sequences import expand
from cwbench.spec.config import PROTOCOLS, MetaWorldConfig, ScheduleConfig
from cwbench.spec.options import resolve, to_record
from cwbench.store.results import SegmentFolder


def protocol(steps: int, every: int) -> Protocol:
    return Protocol("x", {}, {"steps_per_task": steps, "eval_every": every})


def test_every_step_has_its_place_on_the_grid():
    # 100 steps a task, evaluated every 30: at 30, 60, 90 and at the task's end.
    grid = protocol(100, 30)
    assert grid.evaluations == 4
    step = np.array([30, 60, 90, 100, 130, 200, 0, 45, 110])
    position, evaluation = grid.evaluation(step)
    assert evaluation.tolist() == [0, 1, 2, 3, 0, 3, -1, -1, -1]
    assert position[:6].tolist() == [0, 0, 0, 0, 1, 1]
    assert grid.evaluation_steps.tolist() == [30, 60, 90, 100]


def test_unfinished_runs_enter_no_metric(tmp_path: Path) -> None:
    write_results(tmp_path, sequence_names=["cw3-1"], settings=[small("ewc")], seeds=[0])
    write_results(
        tmp_path, sequence_names=["cw3-1"], settings=[small("ewc")], seeds=[1], name="b", upto=0.5
    )
    [group] = build.read(tmp_path).groups
    assert group.evaluation_steps.tolist() == [*range(1000, 31_000, 1000)]
    assert [run.seed for run in group.finished] == [0]
    assert not np.isnan(group.own_windows[0]).any() and np.isnan(group.own_windows[1]).all()
    assert group.progress == pytest.approx((1 + 0.5) / 2)


def test_a_diverged_run_is_in_no_curve_and_in_no_matrix(tmp_path: Path) -> None:
    root = write_results(tmp_path, sequence_names=["cw3-1"], settings=[small("ewc")], seeds=[0, 1])
    [broken] = (root / "segments").glob("ewc-3-hammer-s1-*")
    SegmentFolder(broken).set_status("diverged", message="Q is inf")
    [group] = build.read(tmp_path).groups
    sound = group.sound(group.success)
    assert not np.isnan(group.success[1, 0, :, 0]).any() and np.isnan(sound[1]).all()
    assert_array_equal(sound[0], group.success[0])
    assert_array_equal(group.latest, group.complete)


def test_runs_that_go_on_are_shown_until_one_has_ended(tmp_path: Path) -> None:
    one, ewc = ["cw3-1"], [small("ewc")]
    write_results(tmp_path, sequence_names=one, settings=ewc, seeds=[0], upto=0.5)
    [group] = build.read(tmp_path).groups
    assert not np.isnan(group.latest[0, 0, :, 0]).any()
    write_results(tmp_path, sequence_names=one, settings=ewc, seeds=[1], name="b")
    [group] = build.read(tmp_path).groups
    assert np.isnan(group.latest[0]).all() and not np.isnan(group.latest[1, 0, :, 0]).any()


def test_protocols_of_one_name_have_files_of_their_own(tmp_path: Path) -> None:
    settings = [small("ewc"), small("ewc", env=MetaWorldConfig(reward="v2"))]
    write_results(tmp_path, sequence_names=["cw3-1"], settings=settings, seeds=[0])
    study = build.read(tmp_path)
    slugs = {study.slug(protocol) for protocol in study.protocols}
    assert len(slugs) == 2 and all(slug.startswith("paper-") for slug in slugs)


def test_protocols_of_one_name_are_told_apart_by_what_differs(tmp_path: Path) -> None:
    """The one with the most runs comes first."""
    usual, other = small("ewc"), small("ewc", env=MetaWorldConfig(reward="v2"))
    write_results(tmp_path, sequence_names=["cw3-1"], settings=[other], seeds=[0, 1])
    steps = "steps-per-task 10,000, eval-every 1,000"  # not the paper's
    assert study_titles(tmp_path) == [f"paper, reward v2, {steps}"]
    write_results(tmp_path, sequence_names=["cw3-1"], settings=[usual], seeds=[0], name="b")
    assert study_titles(tmp_path) == [f"paper, reward v2, {steps}", f"paper, {steps}"]


@pytest.mark.parametrize(
    ("name", "changes", "title"),
    [
        ("compact", {}, "compact"),
        ("compact", {"steps_per_task": 100_000}, "compact, steps-per-task 100,000"),
        ("compact", {"lag": 1}, "compact, lag 1"),
        ("componet", {"steps_per_task": 250_000}, "componet, steps-per-task 250,000"),
        ("componet", {"success": "any"}, "componet, success any"),
        ("mylab+1f3a9c", {"steps_per_task": 100_000}, "mylab"),  # what its file says is not known
    ],
)
def test_titles_name_what_is_not_as_the_protocol_says(
    name: str, changes: dict[str, Any], title: str
) -> None:
    own = PROTOCOLS.get(name, {}) | changes
    env, schedule = (resolve(group, own) for group in (MetaWorldConfig, ScheduleConfig))
    protocol = Protocol(name, to_record(env), to_record(schedule))
    assert protocol.full_title == title


def test_options_of_other_environments_are_their_own() -> None:
    assert not Protocol("paper", {"suite": "point", "horizon": 30}, {}).changed


def test_protocols_from_files_are_called_by_their_names(tmp_path: Path) -> None:
    """Marks are shown where only they tell two of them apart."""
    for number, lr in enumerate((0.01, 0.02)):
        file = tmp_path / "mylab.toml"
        file.write_text(f'base = "smoke"\n[options]\nlr = {lr}')
        method, entry = load_method("ewc")
        runs = runs_of("ewc", method, entry, str(file), {}, wanted=expand("point3"), seeds=[0])
        study = build.read(write_runs(tmp_path / str(number), runs, {}))
        [protocol] = study.protocols
        assert study.title(protocol) == study.slug(protocol) == protocol.title == "mylab"
    both = build.read(tmp_path / "0", more=[tmp_path / "1"])
    one, other = both.protocols
    assert {one.name, other.name} == {both.title(one), both.title(other)}
    assert both.slug(one) == f"mylab-{one.key[:6]}" != both.slug(other)


def study_titles(results: Path) -> list[str]:
    study = build.read(results)
    return [study.title(protocol) for protocol in study.protocols]


def test_few_other_sequences_are_called_by_their_names(tmp_path: Path) -> None:
    found = []
    for count in (1, 2, 3):
        sequences = ["cw3-1", "push,hammer", "hammer,push", "push,push-wall"][: count + 1]
        write_results(
            tmp_path / str(count), sequence_names=sequences, settings=[small("ewc")], seeds=[0]
        )
        study = build.read(tmp_path / str(count))
        [protocol] = study.protocols
        assert study.family_title(protocol, "cw3") == "CW3"
        found.append(study.family_title(protocol, "other"))
    assert found == ["push-hammer", "hammer-push and push-hammer", "Other sequences"]
