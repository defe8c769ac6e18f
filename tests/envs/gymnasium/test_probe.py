"""Environments that cannot be trained on are refused."""

import math
from dataclasses import replace
from datetime import date
from typing import Any

import numpy as np
import pytest
from countdown import (
    PENDULUM,
    Bare,
    Bounds,
    Burning,
    Chance,
    Countdown,
    Odd,
    Seen,
    Wandering,
    configured,
)

from cwbench import envs, sequences
from cwbench.envs.gymnasium import probe
from cwbench.spec.config import EnvConfig
from cwbench.spec.errors import UserError
from cwbench.spec.tasks import Score, Task


def test_the_definition_is_in_the_record() -> None:
    config = configured(PENDULUM, replace(PENDULUM, name="heavy", kwargs={"g": 20.0}))
    assert EnvConfig.from_record(config.record()) == config
    other = configured(PENDULUM, replace(PENDULUM, name="heavy", kwargs={"g": 21.0}))
    assert other.record() != config.record() and hash(other) is not None
    assert config.record()["tasks"][1]["kwargs"] == {"g": 20.0}


def odd(**kwargs: Any) -> Task:
    return Task("x", Odd, kwargs, horizon=9)


def test_a_reward_may_be_an_array_of_one_number() -> None:
    env = envs.make("x", configured(odd(reward=[2.5])))
    env.reset(np.random.default_rng(0))
    assert env.step(np.zeros(2, np.float32))[1] == 2.5


def test_an_episode_that_never_tells_success_is_told() -> None:
    for horizon in (9, 1000):  # also where no episode ends in the steps that are tried
        task = Task("x", "Pendulum-v1", horizon=horizon)
        with pytest.warns(UserWarning, match=r'task x: 100 steps have no info\["success"\] or'):
            configured(task)
    configured(replace(odd(info={}), score=Score(threshold=0.0)))  # another rule


def test_a_task_takes_the_scores_of_files() -> None:
    rules: list[Any] = ["success", {"threshold": 3}, {"return_from": 0, "return_to": 8.0}]
    made = [Task("x", Countdown, score=rule, horizon=9).score for rule in rules]
    assert made == [Score(), Score(threshold=3.0), Score(0.0, 8.0)]


@pytest.mark.parametrize("name", ["Observation", "Reward"])
def test_an_episode_must_not_depend_on_those_before(name: str) -> None:
    wrapper = f"gymnasium.wrappers:Normalize{name}"
    with pytest.raises(UserError, match=r"task pendulum keeps state between episodes: .*; `reset`"):
        configured(replace(PENDULUM, wrappers=(wrapper,)))


@pytest.mark.parametrize(
    "name", ["pendulum3", "cheetah-compositionality", "cheetah-transfer", "ant-forgetting"]
)
def test_shipped_tasks_keep_nothing_between_episodes(name: str) -> None:
    configured(*sequences.get(name).definitions)


@pytest.mark.parametrize("env", ["MountainCarContinuous-v0", "Reacher-v5", "Humanoid-v5"])
def test_environments_that_begin_at_random_are_accepted(env: str) -> None:
    configured(Task("x", env, score=Score(threshold=0.0)))


def test_chance_is_no_memory() -> None:
    configured(Task("x", Chance, {"seeded": True}, horizon=9))  # without a warning
    with pytest.warns(UserWarning, match="task x: the same seed begins different episodes, so"):
        configured(Task("x", Chance, {"seeded": False}, horizon=9))


@pytest.mark.parametrize("as_reward", [False, True])
def test_what_is_drawn_late_from_an_unknown_generator_is_not_resumed_exactly(
    as_reward: bool,
) -> None:
    config = configured(Task("x", Wandering, {"as_reward": as_reward}, horizon=1000))
    assert config.record()["tasks"][0]["resume"] == "episode"


def test_a_task_is_tried_once_in_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many methods and sequences of a command have it."""
    tried: list[Task] = []

    def resumes(task: Task) -> bool:
        tried.append(task)
        return False

    monkeypatch.setattr(probe, "_TRIED", {})
    monkeypatch.setattr(probe, "_resumes", resumes)
    pendulum, shorter = (
        Task("swing", "Pendulum-v1", score=Score(-1000, 0), horizon=steps) for steps in (200, 100)
    )
    found = [probe.inspected(task) for task in (pendulum, pendulum, shorter)]
    assert [task.resume for task in found] == ["episode"] * 3
    assert [task.horizon for task in tried] == [200, 100]


def test_an_environment_may_lack_what_is_not_needed() -> None:
    config = configured(Task("x", Bare, horizon=9))
    env: Any = envs.make("x", config)
    env.reset(np.random.default_rng(0))
    assert env.step(np.zeros(1, np.float32))[1] == 1 and not env.unstable
    with pytest.raises(UserError, match="task x has no time limit"):
        configured(Task("x", Bare))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"score": "often"}, "score 'often' is not a rule"),
        ({"horizon": -3}, "`horizon` must be a number of steps, found -3"),
        ({"horizon": 3.5}, "`horizon` must be a number of steps, found 3.5"),
        ({"horizon": 10**11}, "`horizon` is at most 1,000,000 steps, found 100000000000"),
        ({"kwargs": [3]}, "`kwargs` must be a table"),
        ({"kwargs": {"at": date(2026, 1, 1)}}, "`kwargs` must be plain .* type date is not JSON"),
        ({"kwargs": {"at": np.zeros(2)}}, "`kwargs` must be plain .* type ndarray is not JSON"),
        ({"wrappers": ({"wrapper": "a:B", "kwargs": {"f": max}},)}, "`wrappers` must be plain"),
        ({"name": "a b"}, "letters, digits and . . - _ only, found 'a b'"),
    ],
)
def test_a_task_is_checked_where_it_is_made(wrong: Any, message: str) -> None:
    with pytest.raises(UserError, match=message):
        Task(**({"name": "x", "env": Countdown} | wrong))


@pytest.mark.parametrize(
    ("task", "message"),
    [
        (Task("x", "CartPole-v1"), "its action space is Discrete, not Box; choose an"),
        (Task("x", "Nowhere-v1"), "task x: NameNotFound"),
        (Task("x", "no_such_package:Env-v0"), "task x: ModuleNotFoundError"),
        (
            Task("x", "envs/mine.py:Env-v0"),
            r"No .*; write \"mine:Env-v0\", and put the folder of envs/mine.py on PYTHON",
        ),
        (Task("x", "Pendulum-v1", {"mass": 2}), "task x: TypeError"),
        (Task("x", "Pendulum-v1", wrappers=("math:sqrt",)), "task x: TypeError"),
        (Task("x", "Pendulum-v1", wrappers=("math:nothing",)), "cannot import 'math:nothing'"),
        (Task("x", Bounds, {"low": 0, "high": 9, "dtype": "int64"}), "actions are of type int64"),
        (
            Task("x", Bounds, {"low": -math.inf, "high": 9, "dtype": "float32"}),
            "x: its actions are not a vector with finite bounds; wrap it, .* TransformAction",
        ),
        (odd(reward=-1e39), "its reward is -1e.39 after 1 step, too large for 32 bits; scale it"),
        (Task("x", Seen, horizon=9), "task x: its observation space is Dict, not Box; wrap it"),
        (
            Task("x", "Pendulum-v1", wrappers=("countdown:Refusing",)),
            r"countdown.py line \d+, in __init__: RuntimeError: needs a licence$",
        ),
        (Task("x", Countdown), "task x has no time limit"),
        (Task("x", Burning, horizon=9), "task x: .*countdown.py line .*RuntimeError: the motor"),
        (
            Task("x", Countdown, {"broken": True}, horizon=9),
            "task x: an .* not finite after 1 step;",
        ),
        (odd(obs=[1, 2]), "task x: an observation has 2 numbers after 1 step, and its space 1"),
        (odd(obs="left"), "task x: an observation is not numbers"),
        (odd(reward=float("nan")), "task x: its reward is nan after 1 step"),
        (odd(reward="high"), "task x: its reward is not a number"),
        (odd(info={"success": float("nan")}), "task x: its info.* is nan"),
        (odd(info={"is_success": "no"}), r'task x: its info\["is_success"\] is not a number'),
        (odd(info=None), "task x: step does not return .observation, reward, terminated"),
        (odd(old=True), "task x: step does not return .observation, reward, terminated"),
        (odd(exit=True), "task x: .*countdown.py line .*SystemExit: 3"),
    ],
)
def test_unsuitable_environments_are_refused(task: Task, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        configured(task)
