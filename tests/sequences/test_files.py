"""Sequence files, and what is refused in them."""

from pathlib import Path

import pytest

from cwbench import sequences
from cwbench.spec.tasks import Task


def test_lists_and_files(tmp_path: Path) -> None:
    assert sequences.get("push, hammer").tasks == ("push", "hammer")
    assert sequences.get("single-push").tasks == ("push",)
    file = tmp_path / "mine.toml"
    file.write_text('tasks = ["push", "push"]\n')
    assert sequences.get(str(file)) == sequences.Sequence("mine", ("push", "push"))
    assert sequences.get("basketball,push").tasks == ("basketball", "push")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('tasks = ["push"]\ntask = 3', "unknown key 'task'; did you mean 'tasks'"),
        ("tasks = []", "one or more task names"),
        ("tasks = 3", "one or more task names"),
        ('tasks = ["push"]\nname = "a/b"', "may hold"),
        ('tasks = ["push"]\nname = "cw10"', "published sequence"),
        ('tasks = ["push"]\nname = "cw3-9"', "another kind of sequence"),
        ('tasks = ["push", "reach"]\nname = "pair-0-1"', "another kind of sequence"),
        ('tasks = ["push", "reach"]\nname = "single-mine"', "another kind of sequence"),
        ('tasks = ["push"]\nname = "orders-cw10-1"', "another kind of sequence"),
        (
            'tasks = ["push"]\nsuite = "pointmass"',
            "of the suite metaworld, not pointmass",
        ),
        ('tasks = ["reach-0-1"]\nsuite = "metaworld"', "of the suite pointmass, not metaworld"),
        ('suite = "pointmass"', "one or more task names"),
        ('suite = ["pointmass"]', "unknown suite"),
        ("tasks = [", "file"),
    ],
)
def test_bad_files(tmp_path: Path, content: str, message: str) -> None:
    file = tmp_path / "bad.toml"
    file.write_text(content)
    with pytest.raises(ValueError, match=message):
        sequences.get(str(file))


HEAVY = """
suite = "gymnasium"
[[task]]
name = "heavy"
id = "Pendulum-v1"
kwargs = { g = 12.0 }
wrappers = ["mine:Scale", { wrapper = "mine:Mask", kwargs = { keep = [1] } }]
score = { return_from = -1200, return_to = 0.0 }
horizon = 100
[[task]]
id = "Pendulum-v1"
score = { threshold = -200 }
"""


def test_a_file_defines_gymnasium_tasks(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(HEAVY)
    sequence = sequences.get(str(file))
    assert (sequence.suite, sequence.tasks) == ("gymnasium", ("heavy", "Pendulum-v1"))
    heavy, plain = sequence.definitions
    assert (heavy.env, heavy.kwargs, heavy.horizon) == ("Pendulum-v1", {"g": 12.0}, 100)
    assert heavy.score.of(-300.0, False) == pytest.approx(0.75)
    assert [plain.score.of(total, False) for total in (-201.0, -200.0)] == [0.0, 1.0]
    assert hash(heavy) != hash(plain) and Task.from_record(heavy.record()) == heavy


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('id = "Pendulum-v1"\nkwargs', "kwargs", "task heavy: `id` must name"),
        ("score = { threshold = -200 }", "", "task Pendulum-v1: `score` is missing"),
        (", return_to = 0.0", "", "task heavy: score .* is not a rule"),
        ("return_to = 0.0", "return_to = -1200", "return_from = -1200 is not below return_to"),
        ("return_to = 0.0", "return_to = -1300", "return_from = -1200 is not below return_to"),
        ("return_to = 0.0", "return_to = inf", "not finite"),
        ("horizon = 100", "horizon = 0", "task heavy: `horizon`"),
        ("horizon = 100", "steps = 100", "task heavy: unknown key 'steps'; allowed: name, id"),
        ("horizon = 100", "horizn = 100", "unknown key 'horizn'; did you mean 'horizon'"),
        ("{ wrapper", "{ wraper", "unknown key 'wraper'; did you mean 'wrapper'"),
        ('"mine:Scale"', '"Scale"', "wrapper 'Scale'"),
        ('name = "heavy"', 'name = "Pendulum-v1"', "two tasks are called 'Pendulum-v1'"),
        ('suite = "gymnasium"', 'suite = "gym"', "unknown suite 'gym'"),
    ],
)
def test_bad_task_definitions(tmp_path: Path, old: str, new: str, message: str) -> None:
    file = tmp_path / "bad.toml"
    assert old in HEAVY
    file.write_text(HEAVY.replace(old, new, 1))
    with pytest.raises(ValueError, match=message):
        sequences.get(str(file))
