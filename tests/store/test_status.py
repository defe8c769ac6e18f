"""States of segments."""

from pathlib import Path
from typing import Any

from outcomes import states
from sample_results import change_experiment, small, write_results

from cwbench.store.status import read_status, steps_per_second

TASKS = ("reach-0-1", "reach-2-1000", "reach-4-1")


def test_status_of_an_interrupted_run(toy_run: Any, tmp_path: Path) -> None:
    toy_run(tmp_path, seeds=(0, 1), stop_after=12)  # in the second of three tasks
    assert states(tmp_path) == ["done", "stopped", "waiting"] * 2
    [experiment], _ = read_status(tmp_path)
    last = experiment.segments[2]
    assert last.waits_for == experiment.segments[1].id and last.task == TASKS[2]
    assert experiment.counts["stopped"] == 2 and experiment.steps == 2 * 3 * 60
    assert 60 < experiment.step / 2 < 120
    toy_run(tmp_path, seeds=(0, 1))
    assert states(tmp_path) == ["done"] * 6


def test_speed_is_known_after_the_first_steps_and_before_the_end() -> None:
    began = {"state": "running", "started": 10.0, "started_step": 10}
    assert steps_per_second(began | {"step": 10, "updated": 10.0}) is None
    under_way = began | {"step": 60, "updated": 15.0}
    assert steps_per_second(under_way) == (60 - 10) / (15 - 10)
    for change in ({"retraining": [1, 2]}, {"state": "pending"}, {"step": 5}, {"updated": 10.0}):
        assert steps_per_second(under_way | change) is None


def test_an_experiment_without_a_time_is_shown(tmp_path: Path) -> None:
    write_results(tmp_path, sequence_names=["cw3-1"], settings=[small("ewc")], seeds=[0])
    [file] = tmp_path.glob("experiments/*.json")
    change_experiment(file, lambda record: record.update(created=None))
    [experiment], problems = read_status(tmp_path)
    assert experiment.created == 0 and experiment.counts["done"] == 3 and not problems


def test_a_damaged_segment_is_counted(tmp_path: Path) -> None:
    write_results(tmp_path, sequence_names=["cw3-1"], settings=[small("ewc")], seeds=[0])
    [status] = tmp_path.glob("segments/ewc-2-*/status.json")
    status.write_text(status.read_text()[:40])
    [experiment], problems = read_status(tmp_path)
    assert experiment.counts["damaged"] == 1 and len(problems) == 1
    assert sum(experiment.counts.values()) == len(experiment.segments) == 3
