"""Scores of episodes, and tasks that survive records and pipes."""

import functools
import hashlib
import importlib
import json
import math
import pickle
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cwbench.spec.env_source import named_source
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
        ({"return_from": -10, "return_to": 10}, -99.0, True, 0.0),
    ],
)
def test_scores(rule: object, total: float, success: bool, score: float) -> None:
    made = Score.parse(rule)
    assert made.of(total, success) == score
    assert Score.parse(made.record()) == made


@pytest.mark.parametrize(
    "rule",
    [
        {"threshold": True},
        {"threshold": math.inf},
        {"return_from": 10, "return_to": -10},
        {},
        3,
        "solved",
    ],
)
def test_what_is_no_rule_is_refused(rule: object) -> None:
    with pytest.raises(UserError, match="score"):
        Score.parse(rule)


def make_env(size: int = 1) -> int:
    return size


def timed(function: Callable[[], int]) -> Callable[[], int]:
    @functools.wraps(function)
    def wrapper() -> int:
        return function()

    return wrapper


@timed
def make_timed() -> int:
    return 3


class Timed:
    @timed
    def make() -> int:  # type: ignore[misc]
        return 3


def test_decorated_functions_and_methods_are_recorded_by_their_text() -> None:
    text = "@timed\ndef make_timed() -> int:\n    return 3\n"
    recorded = Task("x", make_timed, horizon=1).record()
    assert recorded["source"] == hashlib.sha256(text.encode()).hexdigest()[:12]
    assert Task("x", Timed, horizon=1).record()["callable"].endswith(":Timed")


def test_a_function_is_recorded_by_name_and_text() -> None:
    task = Task("mine", make_env, {"size": 2}, score={"threshold": 1}, horizon=9)
    assert task.score == Score(threshold=1.0)
    record = task.record()
    text = "def make_env(size: int = 1) -> int:\n    return size\n"
    assert record["callable"] == f"{__name__}:make_env"
    assert record["source"] == hashlib.sha256(text.encode()).hexdigest()[:12]
    assert Task.from_record(record) == task
    assert Task("mine", Holder).record()["source"] != record["source"]


def test_a_record_whose_bounds_descend_can_still_be_read() -> None:
    """Its score was inverted, and its policies can still be loaded."""
    record = Task("mine", make_env, horizon=9).record()
    old = record | {"score": {"return_from": 0.0, "return_to": -500.0}}
    assert Task.from_record(old).score == Score(return_from=0.0, return_to=-500.0)


def test_a_task_keeps_its_own_arguments() -> None:
    """What the caller changes later would be trained under the old id."""
    kwargs, wrappers, tasks = {"size": 0, "pair": (1, [2])}, [{"wrapper": "a:B", "kwargs": {}}], []
    for size in range(2):
        kwargs["size"] = size
        tasks.append(Task(f"size{size}", make_env, kwargs, wrappers))  # type: ignore[arg-type]
    before = str(tasks[0].record())
    kwargs["pair"][1].append(3)  # type: ignore[index]
    wrappers[0]["kwargs"]["c"] = 1  # type: ignore[index]
    assert [task.kwargs["size"] for task in tasks] == [0, 1]
    assert str(tasks[0].record()) == before and tasks[0].kwargs["pair"] == (1, [2])
    assert Task.from_record(tasks[0].record()).wrappers == tasks[0].wrappers


def test_numbers_may_be_numpys() -> None:
    assert Task("x", make_env, score={"threshold": np.float32(0.1)}).score == Score(threshold=0.1)
    score: Any = {"threshold": np.int64(1)}
    task = Task("x", make_env, horizon=np.int64(20), score=score)  # type: ignore[arg-type]
    assert task == Task("x", make_env, horizon=20, score=Score(threshold=1.0))
    json.dumps(task.record())
    for horizon in (True, 2.5, np.int64(0)):
        with pytest.raises(UserError, match="`horizon` must be a number of steps"):
            Task("x", make_env, horizon=horizon)  # type: ignore[arg-type]


def test_one_wrapper_without_a_list_is_refused() -> None:
    with pytest.raises(UserError, match="`wrappers` must be a list, found 'a:B'"):
        Task("x", make_env, wrappers="a:B")  # type: ignore[arg-type]


class Holder:
    def __init__(self, size: int = 1) -> None:
        super().__init__()
        self.size = size

    def make(self) -> int:
        return self.size

    def __call__(self) -> int:
        return self.size


THING = object()


def closed_over(size: int) -> Any:
    return lambda: size


def local_class(size: int) -> Any:
    class Local:
        def make(self) -> int:
            return size

    return Local


@pytest.mark.parametrize(
    ("env", "message"),
    [
        (
            functools.partial(make_env, 2),
            "`env` is of type partial: .*; give a function or",
        ),
        (Holder(2), "`env` is of type Holder: records cannot tell what it holds"),
        (Holder(2).make, "`env` is of type method"),
        (closed_over(2), "closed_over.<locals>.<lambda> uses 'size' of the function around it"),
        (local_class(2), "local_class.<locals>.Local uses 'size' of the function around it"),
        (int, "the source of int is not available; define the environment in a file"),
        (3, "`env` is of type int"),
        (lambda size=THING: size, "defaults cannot be part of an id: .object"),
    ],
)
def test_what_a_record_could_not_tell_apart_is_refused(env: Any, message: str) -> None:
    """Otherwise `train` would return the results of other arguments."""
    with pytest.raises(UserError, match=message):
        Task("mine", env)


def test_default_arguments_that_the_text_does_not_show_are_recorded() -> None:
    made = []
    for size in (1, 2):

        def make(size: int = size) -> int:
            return size

        made += [named_source(make), named_source(lambda size=size: size)]
    assert len({source["source"] for source in made}) == 4


MODULE = """
import functools
make = lambda: 1
def inside():
    def made():
        return 1
    return made
local = inside()
def named():
    return 1
@functools.wraps(named)
def other():
    return 2
also_named = named
"""


@pytest.mark.parametrize(
    ("name", "words"),
    [("make", "<lambda>"), ("local", "inside.<locals>.made"), ("other", "named")],
)
def test_what_workers_would_not_find_by_its_name_is_refused(
    name: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Training said that it had changed, and to make the task again."""
    (tmp_path / "unnamed_env.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("unnamed_env")
    message = f"task x: unnamed_env:{words} does not name its `env`; define it at the top level"
    with pytest.raises(UserError, match=re.escape(message)):
        Task("x", getattr(module, name))
    assert Task("x", module.also_named).record()["callable"] == "unnamed_env:named"
    del sys.modules["unnamed_env"]


def test_a_function_of_a_script_goes_to_workers_by_value(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers do not import `__main__`."""
    monkeypatch.setattr(make_env, "__module__", "__main__")
    sent = pickle.dumps(Task("mine", make_env))
    received = pickle.loads(sent)
    assert received.env is not make_env and received.env(3) == 3
    assert pickle.loads(sent) == received and hash(pickle.loads(sent)) == hash(received)
    named = Task("named", "Pendulum-v1")
    assert pickle.loads(pickle.dumps(named)) == named


@pytest.mark.parametrize("name", ["math", "math:", "math:nothing", "no_such_module:f"])
def test_names_that_lead_nowhere(name: str) -> None:
    with pytest.raises(UserError):
        imported(name)


def test_a_task_of_a_module_that_was_reloaded_has_to_be_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its class cannot be sent to workers: another one has its name now."""
    file = tmp_path / "reloaded_env.py"
    file.write_text("class Own: ...\n")
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module(file.stem)
    made = Task("own", module.Own)
    made.check_unchanged()
    importlib.reload(module)
    with pytest.raises(UserError, match=r"reloaded_env:Own has changed .*; .*make the task again"):
        made.check_unchanged()
    Task("own", module.Own).check_unchanged()


BROKEN = {
    "x = = 1\n": "line 1: SyntaxError: invalid syntax",
    "undefined\n": "line 1, in <module>: NameError: name 'undefined' is not defined",
    "import no_such_package\n": "line 1, in <module>: ModuleNotFoundError: No module named 'no_",
    "raise ValueError('one\\ntwo')\n": "line 1, in <module>: ValueError: one two",
    "raise SystemExit(3)\n": "line 1, in <module>: SystemExit: 3",
}


@pytest.mark.parametrize("text", BROKEN)
def test_a_file_that_cannot_be_imported_is_named_in_one_line(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `cwbench retry` and `train` find it, which import what records name."""
    file = tmp_path / f"broken_{len(text)}.py"
    file.write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(UserError) as error:
        imported(f"{file.stem}:make")
    words = f"cannot import '{file.stem}:make': {file} {BROKEN[text]}"
    assert str(error.value).startswith(words)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("nowhere:Wrap", "or put the folder of your own file on PYTHONPATH"),
        ("own/nowhere.py:Wrap", 'write "nowhere:Wrap", and put the folder of own/nowhere.py on'),
    ],
)
def test_a_module_that_is_not_found_is_answered_with_where_to_put_it(name: str, hint: str) -> None:
    with pytest.raises(UserError, match=f"cannot import '{name}': .*No module named .*; .*{hint}"):
        imported(name)


@pytest.mark.parametrize("edit", ["class Own: x = 1\n", "class Own(\n", ""])
def test_a_record_stays_while_the_file_of_its_environment_is_edited(
    edit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Records are written at each task's start, and must have the ids that were planned."""
    file = tmp_path / f"edited_env_{len(edit)}.py"
    file.write_text("class Own: ...\n")
    monkeypatch.syspath_prepend(tmp_path)
    made = Task("own", importlib.import_module(file.stem).Own)
    before = made.record()
    assert before["source"] == hashlib.sha256(b"class Own: ...\n").hexdigest()[:12]
    file.write_text(edit)
    assert made.record() == pickle.loads(pickle.dumps(made)).record() == before
