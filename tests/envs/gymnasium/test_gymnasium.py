"""Gymnasium environments as tasks: what is asked of them, refused, changed and resumed."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from numpy.testing import assert_array_equal

from cwbench import envs, sequences
from cwbench.envs.gymnasium.env import build
from cwbench.learner.heads import TaskIndex
from cwbench.learner.replay import Batch
from cwbench.rollout.episodes import Envs, Lane, LaneSpec
from cwbench.rollout.numpy_policy import Actor
from cwbench.spec.actor_layout import ActorLayout
from cwbench.spec.config import EnvConfig, GymnasiumConfig
from cwbench.spec.tasks import Score, Task
from cwbench.spec.transition import Dims


class Countdown(gymnasium.Env):  # type: ignore[misc]
    """Ends in a terminal state after four steps; its state is of a kind that cannot be saved."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (1,))
    action_space = gymnasium.spaces.Box(
        np.array([0, -4], np.float32), np.array([10, 4], np.float32)
    )

    def __init__(self, *, broken: bool = False) -> None:
        self.broken, self.seen = broken, list[Any]()
        self.left: Iterator[int] = iter(())

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.left = iter((3, 2, 1, 0))
        return np.ones(1), {}

    def step(self, action: Any) -> Any:
        self.seen.append(action)
        left = next(self.left)
        obs = np.array([np.nan if self.broken else left])
        return obs, 2.0, left == 0, False, {"success": left == 2}


class Seen(Countdown):
    """With observations in a dictionary."""

    observation_space = gymnasium.spaces.Dict({"left": Countdown.observation_space})


class Refusing(gymnasium.Wrapper):  # type: ignore[misc]
    def __init__(self, env: Any) -> None:
        raise RuntimeError("needs a licence")


def configured(*tasks: Task) -> EnvConfig:
    return envs.configure(GymnasiumConfig(), tasks)


COUNTDOWN = Task("countdown", Countdown, horizon=10)
PENDULUM = Task("pendulum", "Pendulum-v1", score=Score(-1200.0, 0.0), horizon=50)
CHEETAH = Task("cheetah", "HalfCheetah-v5", score=Score(threshold=0.0), horizon=40)


def test_sizes_are_padded_and_actions_scaled() -> None:
    config = configured(COUNTDOWN, PENDULUM)
    assert envs.dims(config) == Dims(3, 2, terminates=True) and config.horizon == 50
    env: Any = envs.make("countdown", config)
    assert_array_equal(env.reset(np.random.default_rng(0)), [1, 0, 0])
    for action in ([-1, 1], [0, 0], [1, -1]):
        env.step(np.array(action, np.float32))
    assert np.array(env.env.seen) == pytest.approx(np.array([[0, 4], [5, 0], [10, -4]]))


def test_terminal_states_scores_and_limits() -> None:
    env = envs.make("countdown", configured(COUNTDOWN))
    env.reset(np.random.default_rng(0))
    steps = [env.step(np.zeros(2, np.float32)) for _ in range(4)]
    assert [step[2:] for step in steps] == [(0, False, False)] * 3 + [(1, True, False)]
    with pytest.raises(RuntimeError, match="reset it first"):
        env.step(np.zeros(2, np.float32))
    cut = envs.make("countdown", configured(replace(COUNTDOWN, horizon=2, score=Score(0.0, 8.0))))
    cut.reset(np.random.default_rng(0))
    assert cut.step(np.zeros(2, np.float32))[2:] == (0, False, False)
    assert cut.step(np.zeros(2, np.float32))[2:] == (0.5, False, True)


def test_the_definition_is_in_the_record() -> None:
    config = configured(PENDULUM, replace(PENDULUM, name="heavy", kwargs={"g": 20.0}))
    assert EnvConfig.from_record(config.record()) == config
    other = configured(PENDULUM, replace(PENDULUM, name="heavy", kwargs={"g": 21.0}))
    assert other.record() != config.record() and hash(other) is not None
    assert config.record()["tasks"][1]["kwargs"] == {"g": 20.0}


@pytest.mark.parametrize(
    ("task", "message"),
    [
        (Task("x", "CartPole-v1"), "task x: its action space is Discrete"),
        (Task("x", "Nowhere-v1"), "task x: NameNotFound"),
        (Task("x", "no_such_package:Env-v0"), "task x: ModuleNotFoundError"),
        (Task("x", "Pendulum-v1", {"mass": 2}), "task x: TypeError"),
        (Task("x", "Pendulum-v1", wrappers=("math:sqrt",)), "task x: TypeError"),
        (Task("x", "Pendulum-v1", wrappers=("math:nothing",)), "cannot import 'math:nothing'"),
        (Task("x", Seen, horizon=9), "task x: its observation space is Dict, not Box; wrap it"),
        (Task("x", "Pendulum-v1", wrappers=(f"{__name__}:Refusing",)), "x: RuntimeError: needs a"),
        (Task("x", Countdown), "task x has no time limit"),
        (Task("x", Countdown, {"broken": True}, horizon=9), "task x: an observation is not finite"),
    ],
)
def test_unsuitable_environments_are_refused(task: Task, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        configured(task)


def lane(config: EnvConfig, *names: str) -> Lane:
    dims = envs.dims(config)
    shapes = {"actor.0.bias": (2 * dims.action,)}
    actor = Actor(ActorLayout(shapes, 0, 0), np.zeros(2 * dims.action, np.float32))
    cycle = tuple(enumerate(names))
    return Lane(LaneSpec(0, 3, 0, 0, cycle, 10_000, ()), Envs(config), actor)


def rows(config: EnvConfig, steps: int) -> Any:
    return np.zeros((steps, envs.dims(config).width), np.float32)


@pytest.mark.parametrize("task", [PENDULUM, CHEETAH, replace(CHEETAH, env="Ant-v5")])
def test_a_resumed_lane_equals_an_uninterrupted_one(task: Task) -> None:
    config = configured(task)
    assert config.record()["tasks"][0]["resume"] == "exact"
    first, second = lane(config, task.name), lane(config, task.name)
    first.collect(rows(config, 53))
    second.load(first.save())
    one, other = rows(config, 60), rows(config, 60)
    ends = [
        [(episode.score, episode.total) for episode in part.collect(out)]
        for part, out in ((first, one), (second, other))
    ]
    assert ends[0] == ends[1]
    assert_array_equal(one, other)


def test_where_no_state_can_be_saved_a_new_episode_begins() -> None:
    config = configured(COUNTDOWN)
    assert config.record()["tasks"][0]["resume"] == "episode"
    first, second = lane(config, "countdown"), lane(config, "countdown")
    first.collect(rows(config, 6))
    second.load(first.save())
    assert (second.step, second.time, second.episode) == (6, 0, first.episode + 1)


def test_terminated_is_stored_and_truncated_is_not() -> None:
    config = configured(COUNTDOWN)
    out = rows(config, 9)
    assert len(lane(config, "countdown").collect(out)) == 2
    assert out[:, -1].tolist() == [0, 0, 0, 1, 0, 0, 0, 1, 0]
    config = configured(replace(COUNTDOWN, horizon=3))
    out = rows(config, 9)
    assert len(lane(config, "countdown").collect(out)) == 3
    assert not out[:, -1].any()


def test_tasks_of_a_cycle_take_turns_whatever_their_episodes() -> None:
    config = configured(COUNTDOWN, PENDULUM)  # turns of 50 steps
    both = lane(config, "countdown", "pendulum")
    out = rows(config, 120)
    finished = both.collect(out)
    rewards = out[:, 5]
    assert (rewards[:50] == 2).all() and (rewards[100:] == 2).all() and (rewards[50:100] <= 0).all()
    assert sum(episode.complete for episode in finished) == 12 + 1 + 5
    assert len(finished) == 12 + 1 + 5 + 1  # the turn ends in the middle of the thirteenth


def test_a_terminal_state_has_no_value_after_it() -> None:
    """Two states: the first leads to the second with reward 1, the second ends with reward 3."""
    dims = Dims(1, 1, terminates=True)
    table = torch.tensor([[[0.0, 0, 1, 1, 0], [1.0, 0, 3, 0, 1]]])  # s, a, r, s', terminated
    batch = Batch(
        **dims.unpack(table),
        tasks=TaskIndex.single(0, 1, 2, torch.device("cpu")),
        weight=torch.full((1, 2), 0.5),
        rows=torch.arange(2)[None],
    )
    values = torch.zeros(2)
    for _ in range(3):
        values = (batch.reward + batch.discount(0.5) * values[batch.next_obs[..., 0].long()])[0]
    assert values.tolist() == [1 + 0.5 * 3, 3]


@pytest.mark.parametrize("robot", ["cheetah", "ant"])
def test_factors_of_the_scenarios_reach_the_model(robot: str) -> None:
    names = [name for name in sequences.names() if name.startswith(robot)]
    found = {task.name: task for name in names for task in sequences.get(name).definitions}
    assert len(names) == 4 and all(len(sequences.get(name).tasks) == 8 for name in names)
    plain = build(found[f"{robot}-normal"]).unwrapped.model
    moon, huge, rain = (
        build(found[f"{robot}-{name}"]).unwrapped.model for name in ("moon", "hugefoot", "rainfall")
    )
    gravity, friction = (0.15, 0.4) if robot == "cheetah" else (0.7, 0.375)
    assert moon.opt.gravity[2] / plain.opt.gravity[2] == pytest.approx(gravity)
    assert rain.geom_friction[:, 0] == pytest.approx(friction * plain.geom_friction[:, 0])
    changed = np.flatnonzero(huge.body_mass != plain.body_mass)
    assert len(changed) == (2 if robot == "cheetah" else 4)
    assert huge.body_mass[changed] == pytest.approx(1.5 * plain.body_mass[changed])
    geoms = np.flatnonzero(huge.geom_size[:, 0] != plain.geom_size[:, 0])
    assert_array_equal(huge.geom_bodyid[geoms], changed)
    assert huge.geom_rbound[geoms] == pytest.approx(huge.geom_size[geoms, :2].sum(1))


def test_masks_of_actions_and_observations() -> None:
    found = {task.name: task for task in sequences.get("ant-compositionality").definitions}
    env = build(found["ant-disabled_hard1"])
    env.reset(seed=0)
    env.step(np.full(8, 0.5, np.float32))
    assert env.unwrapped.data.ctrl.tolist() == [0, 0, 0.5, 0.5, 0, 0, 0, 0]
    defective = {t.name: t for t in sequences.get("cheetah-transfer").definitions}
    obs, _ = build(defective["cheetah-defective_module"]).reset(seed=0)
    assert np.flatnonzero(obs == 0).tolist() == [2, 6, 7, 9, 11, 13, 14]
