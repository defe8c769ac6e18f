"""Environments as functions and classes: what changes numbers changes their ids."""

import hashlib
import importlib
import itertools
import json
import linecache
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from commands import environment

from cwbench.spec.errors import UserError
from cwbench.spec.tasks import Task


@pytest.fixture
def run_main() -> Iterator[Any]:
    """Runs code as a script or notebook does: its functions are of `__main__`."""
    files: list[str] = []

    def run(code: str) -> dict[str, Any]:
        file = f"<main {len(files)}>"
        files.append(file)
        linecache.cache[file] = (len(code), None, code.splitlines(keepends=True), file)
        values: dict[str, Any] = {"__name__": "__main__", "Task": Task}
        exec(compile(code, file, "exec"), values)
        return values

    yield run
    for file in files:
        del linecache.cache[file]


def source(env: Any) -> str:
    return str(Task("x", env).record()["source"])


def text_hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


SCRIPT = """
import math
import gymnasium
GOAL = 0.5
SCALE = 2
SHIFT = slice(1, 2)
def helper(x):
    return SCALE * x
class Base:
    top = 3
    def size(self):
        return self.top
class Env(Base):
    goal = GOAL
    observation_space = gymnasium.spaces.Box(-1, 4, (2000,))
    def __init__(self):
        self.shift = SHIFT
def make(factor=1):
    class Inner(Env):
        scale = SCALE
    return helper(GOAL) * factor * Env().size()
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("GOAL = 0.5", "GOAL = 0.6"),
        ("SCALE * x", "SCALE + x"),
        ("SCALE = 2", "SCALE = 3"),
        ("top = 3", "top = 4"),
        ("return self.top", "return -self.top"),
        ("slice(1, 2)", "slice(1, 3)"),
        ("Box(-1, 4, (2000,))", "Box(-1, 5, (2000,))"),
        ("factor=1", "factor=GOAL"),
        ("import math", "import math\nprint"),
    ],
)
def test_what_a_scripts_function_uses_there_is_part_of_its_id(
    run_main: Any, old: str, new: str
) -> None:
    first, again, other = (run_main(c)["make"] for c in (SCRIPT, SCRIPT, SCRIPT.replace(old, new)))
    assert source(first) == source(again)
    assert (source(other) == source(first)) is (old == "import math")


def test_a_class_inside_a_function_uses_values_of_the_script(run_main: Any) -> None:
    code = "GOAL = {}\ndef make():\n    class Inner:\n        goal = GOAL\n    return Inner()\n"
    assert len({source(run_main(code.format(goal))["make"]) for goal in (1, 2, 1)}) == 2


def test_a_text_that_tells_all_keeps_its_id(run_main: Any) -> None:
    """Version 0.2 took the text."""
    text = "def make(size=1):\n    return math.sqrt(size)\n"
    assert source(run_main("import math\n" + text)["make"]) == text_hash(text)
    lambda_ = "f = lambda size=1: size\n"
    assert source(run_main(lambda_)["f"]) == text_hash(lambda_)


MODULE = """
GOAL = 0.5
def make():
    return GOAL
class Env:
    goal = GOAL
    def size(self):
        return GOAL
two = {"a": lambda: 1, "b": lambda: 2}
"""


def test_environments_of_modules_and_registered_ones_keep_their_ids(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By their own text, as ever: what was trained is found again."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "env_module.py").write_text(MODULE)
    importlib.invalidate_caches()
    module = importlib.import_module("env_module")
    assert source(module.make) == text_hash("def make():\n    return GOAL\n") == "f11525d659b2"
    [_, text] = MODULE.split("class ")
    assert source(module.Env) == text_hash("class " + text.split("two")[0])
    assert Task("x", "Pendulum-v1", {"g": 9.8}).record() == {
        "name": "x", "id": "Pendulum-v1", "kwargs": {"g": 9.8}, "wrappers": [], "score": "success",
        "horizon": None, "obs_size": 0, "action_size": 0, "resume": "",
    }  # fmt: skip
    with pytest.raises(UserError, match="shares its lines with another lambda"):
        Task("x", module.two["a"])
    del sys.modules["env_module"]


@pytest.mark.parametrize(
    "code",
    [
        'E = {"x": lambda: 0.5, "y": lambda: -0.9}; f = E["x"]',
        "f = (\n    lambda x=1: x\n    + 0.7\n)",  # Python finds the first line only
        "f = lambda: max([1, 2], key=lambda x: -x)",
    ],
)
def test_a_lambda_that_its_line_does_not_tell_is_refused(run_main: Any, code: str) -> None:
    with pytest.raises(UserError, match=r"<lambda> shares its lines .*; write a function with"):
        Task("x", run_main(code + "\n")["f"])


def test_a_lambda_may_have_several_lines_in_brackets(run_main: Any) -> None:
    made = run_main("f = lambda: min(\n    [1, 2]\n)\n")["f"]
    assert Task("lambda", made).env() == 1  # type: ignore[operator]


def test_a_task_keeps_the_values_of_its_definition(run_main: Any) -> None:
    """Python looks them up when a function is called: all would have the last one."""
    code = """
tasks = []
for g in (1, 2):
    tasks.append(Task(f"g{g}", env=lambda: g))
g = 3
"""
    tasks = run_main(code)["tasks"]
    assert [task.env() for task in tasks] == [1, 2]
    assert [pickle.loads(pickle.dumps(task)).env() for task in tasks] == [1, 2]
    assert pickle.loads(pickle.dumps(tasks[0])) == tasks[0] != tasks[1]
    assert len({task.record()["source"] for task in tasks}) == 2


def test_tasks_of_one_class_keep_the_values_of_their_definitions(run_main: Any) -> None:
    """Making one environment changes neither that of another task nor the class itself."""
    code = """
from enum import Enum
class Size(Enum):
    SMALL = 1
    def times(self):
        return GOAL
class Env:
    def goal(self):
        return GOAL, Size.SMALL.times()
GOAL = 1
one = Task("one", env=Env)
GOAL = 2
two = Task("two", env=Env)
"""
    main = run_main(code)
    tasks = [main["one"], main["two"]]
    for one, two in (tasks, pickle.loads(pickle.dumps(tasks))):
        environments = [one.env(), two.env()]
        assert [env.goal() for env in environments] == [(1, 1), (2, 2)]
    assert source(main["Env"]) == tasks[1].record()["source"]
    main["GOAL"] = 3
    assert main["Env"]().goal() == (3, 3)
    assert len({source(main["Env"]), *(task.record()["source"] for task in tasks)}) == 3


def test_a_task_is_made_after_what_its_function_uses(run_main: Any) -> None:
    code = "def make():\n    return max(helper())\n"
    with pytest.raises(UserError, match="make uses 'helper', which is not defined yet; make the"):
        Task("x", run_main(code)["make"])
    inside = run_main("def helper():\n    return GOAL\n" + code)["make"]
    with pytest.raises(UserError, match="make uses 'GOAL', which is not defined yet"):
        Task("x", inside)
    later = run_main(code + "def helper():\n    return [1]\n")["make"]
    assert Task("x", later).env() == 1  # type: ignore[operator]


def test_a_value_that_has_no_text_is_refused(run_main: Any) -> None:
    code = "thing = object()\ndef make():\n    return thing\n"
    message = "thing cannot be part of an id: .*; create it in a function .* in a file and import"
    with pytest.raises(UserError, match=message):
        Task("x", run_main(code)["make"])


PLAIN = """
class Plain(Fraction):
    metadata = {"render_modes": ["rgb_array"]}
    goal = 3

    def size(self):
        return math.pi
"""
CLASSES = f"""
import json, math, sys
from fractions import Fraction
from cwbench.spec.tasks import Task

GOAL = float(sys.argv[1])
class Env:
    goal = 2 * GOAL
    size = 1
class Reads:
    def size(self):
        return GOAL
class Derived(Env):
    pass
{PLAIN}
print(json.dumps([Task("x", env).record()["source"] for env in (Plain, Env, Reads, Derived)]))
"""


def test_classes_of_a_script(tmp_path: Path) -> None:
    """Their ids change with what they use, and with nothing else."""
    file = tmp_path / "script.py"
    file.write_text(CLASSES)
    runs = [
        subprocess.run(
            [sys.executable, str(file), goal],
            env=environment() | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed, goal in (("1", "0.5"), ("2", "0.5"), ("3", "0.7"))
    ]
    first, again, other = map(json.loads, runs)
    assert first == again
    assert first[0] == other[0]
    assert not set(first[1:]) & set(other[1:])
    assert all(one != two for one, two in itertools.combinations(first, 2))


def test_results_of_version_0_2_are_read_with_the_same_text(
    run_main: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their ids leave out what the function uses of its script."""
    text = "def make_old():\n    return GOAL\n"
    main = run_main("GOAL = 1\n" + text)
    monkeypatch.setattr(sys.modules["__main__"], "make_old", main["make_old"], raising=False)
    record = Task("x", main["make_old"]).record()
    old = record | {"source": text_hash(text)}
    assert record != old == Task.from_record(old).record()
    assert Task.from_record(record | {"source": "other"}).record() == record
