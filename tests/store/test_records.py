"""Records that lack something, hold something else, or come from a later version."""

import pickle
from pathlib import Path
from typing import Any

import pytest

from cwbench.spec.errors import UserError
from cwbench.spec.segment import SCHEMA
from cwbench.store.files import Damaged
from cwbench.store.records import (
    EXPERIMENT_KEYS,
    RUN_KEYS,
    Problem,
    check_run,
    checked,
    checked_segment,
    created,
    listing,
)

FILE = Path("results/experiments/a.json")
EXPERIMENT = {"schema": SCHEMA, "name": "a", "runs": []}
RUN: dict[str, Any] = {
    **dict.fromkeys(RUN_KEYS, "x"),
    "seed": 0,
    "tasks": ["hammer", "push"],
    "segments": ["s0", "s1"],
    "steps": [10, 10],
}


def test_a_whole_record_is_returned_as_it_is() -> None:
    assert checked(EXPERIMENT, EXPERIMENT_KEYS, FILE) is EXPERIMENT
    check_run(RUN, FILE)


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ([], "expected a record, found list"),
        ({"schema": SCHEMA, "runs": []}, "without name"),
        (EXPERIMENT | {"runs": 3}, "runs is 3"),
        (EXPERIMENT | {"schema": SCHEMA + 1}, "is newer than"),
    ],
)
def test_a_wrong_record_is_refused(record: Any, reason: str) -> None:
    with pytest.raises(UserError, match=reason):
        checked(record, EXPERIMENT_KEYS, FILE)


SEGMENT: dict[str, Any] = {
    **{key: {} for key in ("method_options", "sac", "network", "env")},
    "schedule": {"steps_per_task": 100, "eval_every": 10},
    "schema": SCHEMA,
    "id": "0" * 12,
    "method": "ewc",
    "seed": 0,
    "tasks": ["push"],
    "joint": False,
}


def test_a_segment_may_leave_out_how_it_was_trained() -> None:
    about = {"device": {"type": "cuda"}, "source": None, "created": 1}
    for whole in (SEGMENT, SEGMENT | about):
        assert checked_segment(whole, FILE) is whole


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"versions": "x"}, "versions is 'x'"),
        ({"device": None}, "device is None"),
        ({"protocol": []}, r"protocol is \[\]"),
        ({"tasks": [1]}, r"tasks is \[1\]"),
        ({"schedule": {"steps_per_task": 100}}, "without eval_every"),
        ({"schedule": {"steps_per_task": 100, "eval_every": []}}, r"eval_every is \[\]"),
        ({"schedule": {"steps_per_task": 100, "eval_every": 0}}, "eval_every is 0"),
        ({"schedule": {"steps_per_task": 10**400, "eval_every": 1}}, "steps_per_task is 1000"),
    ],
)
def test_a_segment_with_something_else_is_damaged(change: dict[str, Any], reason: str) -> None:
    with pytest.raises(Damaged, match=reason):
        checked_segment(SEGMENT | change, FILE)


@pytest.mark.parametrize("found", [None, [], "x", 10**400])
def test_an_experiment_of_no_known_time_is_the_oldest(found: Any) -> None:
    assert created({"created": found}) == 0 and created({}) == 0
    assert created({"created": 1.5}) == 1.5


@pytest.mark.parametrize(
    "change",
    [{"segments": []}, {"steps": [10]}, {"tasks": [1, 2]}, {"tasks": ["hammer"]}],
)
def test_a_run_whose_lists_do_not_fit_is_damaged(change: dict[str, Any]) -> None:
    with pytest.raises(Damaged):
        check_run(RUN | change, FILE)


def test_damage_is_listed_under_the_name_of_its_file() -> None:
    """An error that names no file is about the one that was read."""
    problems: list[Problem] = []
    root = Path("results")
    for error in (Damaged(FILE, "odd: not JSON"), UserError(f"{FILE} leads out"), OSError("x: y")):
        with listing(root, problems, FILE):
            raise error
    reasons = ["odd: not JSON", "leads out", "x: y"]
    assert [(one.file, one.reason) for one in problems] == [
        ("experiments/a.json", r) for r in reasons
    ]
    assert problems == [f"experiments/a.json: {reason}" for reason in reasons]


def test_a_problem_can_be_sent_to_another_process() -> None:
    sent = pickle.loads(pickle.dumps(Problem("a.json", "odd")))
    assert sent == "a.json: odd" and (sent.file, sent.reason) == ("a.json", "odd")
