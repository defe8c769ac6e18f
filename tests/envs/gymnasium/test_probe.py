"""Environments that cannot be trained on are refused."""

from dataclasses import replace

import pytest
from countdown import PENDULUM, Burning, Countdown, Seen, configured

from cwbench.spec.config import EnvConfig
from cwbench.spec.tasks import Task


def test_the_definition_is_in_the_record() -> None:
    config = configured(PENDULUM, replace(PENDULUM, name="heavy", kwargs={"g": 20.0}))
    assert EnvConfig.from_record(config.record()) == config
    other = configured(PENDULUM, replace(PENDULUM, name="heavy", kwargs={"g": 21.0}))
    assert other.record() != config.record() and hash(other) is not None
    assert config.record()["tasks"][1]["kwargs"] == {"g": 20.0}


@pytest.mark.parametrize(
    ("task", "message"),
    [
        (Task("x", "CartPole-v1"), "its action space is Discrete, not Box; choose an"),
        (Task("x", "Nowhere-v1"), "task x: NameNotFound"),
        (Task("x", "no_such_package:Env-v0"), "task x: ModuleNotFoundError"),
        (Task("x", "Pendulum-v1", {"mass": 2}), "task x: TypeError"),
        (Task("x", "Pendulum-v1", wrappers=("math:sqrt",)), "task x: TypeError"),
        (Task("x", "Pendulum-v1", wrappers=("math:nothing",)), "cannot import 'math:nothing'"),
        (Task("x", Seen, horizon=9), "task x: its observation space is Dict, not Box; wrap it"),
        (Task("x", "Pendulum-v1", wrappers=("countdown:Refusing",)), "x: RuntimeError: needs a"),
        (Task("x", Countdown), "task x has no time limit"),
        (Task("x", Burning, horizon=9), "task x: .*countdown.py line .*RuntimeError: the motor"),
        (Task("x", Countdown, {"broken": True}, horizon=9), "task x: an observation is not finite"),
    ],
)
def test_unsuitable_environments_are_refused(task: Task, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        configured(task)
