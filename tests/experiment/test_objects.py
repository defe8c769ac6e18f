"""Methods and sequences as objects: the same names and ids as on the command line."""

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

from cwbench import methods, sequences
from cwbench.experiment.objects import find_method, find_sequences, find_several
from cwbench.spec.errors import UserError
from cwbench.spec.tasks import Task

EXAMPLE = Path(__file__).parents[2] / "examples" / "pull.py"


def test_a_registered_class_is_the_method_of_its_name() -> None:
    assert find_method(methods.METHODS["recall"].method) == ("recall", *methods.load("recall"))
    assert find_method("recall-tn") == ("recall-tn", *methods.load("recall-tn"))


def test_a_class_of_a_module_is_recorded_as_from_its_file() -> None:
    spec = importlib.util.spec_from_file_location("pull_module", EXAMPLE)
    assert spec is not None and spec.loader is not None
    module = sys.modules["pull_module"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    name, recorded, entry = find_method(module.Pull)
    from_file = methods.load(f"{EXAMPLE}:Pull")
    assert (name, recorded, entry.source) == ("Pull", "Pull", from_file[1].source)


def test_another_class_is_no_method() -> None:
    with pytest.raises(UserError, match="is not a method; give a name or a subclass"):
        find_method(dict)  # type: ignore[arg-type]


def test_sequences_are_names_tasks_or_objects() -> None:
    assert [one.name for one in find_sequences("cw3-*")] == [f"cw3-{n}" for n in range(1, 9)]
    assert find_sequences(["push", "hammer"]) == sequences.expand("push,hammer")
    own = sequences.Sequence("mine", ("push", "hammer"))
    assert find_sequences(own) == [own]
    pair = sequences.get("pair-5-0")
    assert find_sequences(pair) == [pair]
    points = sequences.Sequence("points", ("reach-0-1", "reach-2-1"))
    assert [one.suite for one in find_sequences(points)] == ["pointmass"]


def test_tasks_with_environments_of_their_own_make_a_sequence() -> None:
    heavy, light = Task("heavy", "Pendulum-v1"), Task("light", "Pendulum-v1", kwargs={"g": 2.0})
    [made] = find_sequences([heavy, light, heavy])
    assert (made.tasks, made.suite) == (("heavy", "light", "heavy"), "gymnasium")
    assert made.definitions == (heavy, light)


def test_a_file_and_an_iterator_are_sequences(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('name = "mine"\ntasks = ["push", "hammer"]\n')
    assert find_sequences(file) == find_sequences(str(file)) == find_several(file)
    tasks = [Task(name, "Pendulum-v1") for name in "ab"]
    assert find_sequences(iter(tasks)) == find_sequences(tasks)


def test_several_sequences_are_a_list_of_anything_but_tasks() -> None:
    """A list that `find_sequences` takes for one sequence is that sequence."""
    heavy, light = Task("heavy", "Pendulum-v1"), Task("light", "Pendulum-v1", kwargs={"g": 2.0})
    one: Any
    for one in (["reach-0-1", "reach-3-1"], ("push", "hammer"), [heavy, light], "cw3-*", "push"):
        assert find_several(one) == find_sequences(one)
    mixed: list[Any] = [["push", "hammer"], [light], "cw3-1", "cw3-1"]
    for several, names in (
        (["cw3-1", "cw3-2"], ["cw3-1", "cw3-2"]),
        (["cw3-1", "push"], ["cw3-1", "push"]),
        (mixed, ["push-hammer", "light", "cw3-1"]),
    ):
        assert [found.name for found in find_several(several)] == names


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (["push", "hamer"], "unknown task 'hamer'; did you mean 'hammer'?"),
        ([Task("a", "X-v1"), "push"], "a sequence has tasks by name and tasks as objects"),
        ([Task("a", "X-v1"), Task("a", "Y-v1")], "two tasks are called 'a'; give each a name"),
        ([], r"\[\] is not a sequence; give a name"),
        ([3], r"\[3\] is not a sequence; give a name"),
        ({"push"}, r"{'push'} is not a sequence; give a name, or a list"),  # which has no order
        ({"push": 1}, r"{'push': 1} is not a sequence; give a name"),
        (sequences.Sequence("cw3-1", ("push",)), "'cw3-1' is the name of a published sequence"),
        (sequences.Sequence("mine", ("foo",)), "unknown task 'foo'"),
        (sequences.Sequence("pair-0-1", ("push", "reach")), "'pair-0-1' is the name of another"),
        (sequences.Sequence("../esc/x y", ("push",)), "`name` may hold letters, .*'../esc/x y'"),
        (sequences.Sequence("x", ()), "`tasks` must be a list of one or more task names"),
        (sequences.Sequence("x", "push"), "`tasks` must be a list"),  # type: ignore[arg-type]
        (sequences.Sequence("x", ("push",), "pointmass"), "are of the suite metaworld, not point"),
        (sequences.Sequence("x", ("a", "b"), definitions=(Task("a", "X-v1"),)), "'b' has no defi"),
        (
            sequences.Sequence("x", ("a",), "pointmass", (Task("a", "X-v1"),)),
            "suite gymnasium, no",
        ),
    ],
)
def test_what_is_no_sequence(wanted: Any, message: str) -> None:
    with pytest.raises(UserError, match=message):
        find_sequences(wanted)
    if isinstance(wanted, set | dict):
        with pytest.raises(UserError, match=message):
            find_several(wanted)
