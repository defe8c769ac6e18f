"""Scores of episodes, and tasks that survive records and pipes."""

import math
import pickle

import pytest

from cwbench.spec.errors import UserError
from cwbench.spec.tasks import CW_TASKS, METAWORLD_TASKS, Score, Task, imported


def test_the_ten_tasks_have_the_papers_ids() -> None:
    assert len(CW_TASKS) == 10 and len(set(METAWORLD_TASKS)) == 50
    assert [CW_TASKS[number] for number in (0, 5)] == ["hammer", "handle-press-side"]


@pytest.mark.parametrize(
    ("rule", "total", "success", "score"),
    [
        ("success", 5.0, True, 1.0),
        ("success", 5.0, False, 0.0),
        ({"threshold": 5}, 5.0, False, 1.0),
        ({"threshold": 5}, 4.9, True, 0.0),
        ({"return_from": -10, "return_to": 10}, 5.0, False, 0.75),
        ({"return_from": -10, "return_to": 10}, 99.0, False, 1.0),
        ({"return_from": 10, "return_to": -10}, 0.0, False, 0.5),
    ],
)
def test_scores(rule: object, total: float, success: bool, score: float) -> None:
    made = Score.parse(rule)
    assert made.of(total, success) == score
    assert Score.parse(made.record()) == made


@pytest.mark.parametrize("rule", [{"threshold": True}, {"threshold": math.inf}, {}, 3, "solved"])
def test_what_is_no_rule_is_refused(rule: object) -> None:
    with pytest.raises(UserError, match="score"):
        Score.parse(rule)


def make_env(size: int = 1) -> int:
    return size


def test_a_function_is_recorded_by_name_and_text() -> None:
    task = Task("mine", math.sqrt, {"size": 2}, score=Score(threshold=1.0), horizon=9)
    record = task.record()
    assert record["callable"] == "math:sqrt" and Task.from_record(record) == task
    assert Task("mine", make_env).record()["source"] != record["source"]


def test_a_function_of_a_script_goes_to_workers_by_value() -> None:
    """Workers do not import `__main__`."""
    space: dict[str, object] = {"__name__": "__main__"}
    exec("def own(size):\n    return size + 1", space)
    sent = pickle.dumps(Task("mine", space["own"]))  # type: ignore[arg-type]
    received = pickle.loads(sent)
    assert received.env(2) == 3 and pickle.loads(sent) == received


@pytest.mark.parametrize("name", ["math", "math:", "math:nothing", "no_such_module:f"])
def test_names_that_lead_nowhere(name: str) -> None:
    with pytest.raises(UserError):
        imported(name)
