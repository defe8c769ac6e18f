"""A gymnasium environment that terminates, and lanes of tasks made of it."""

import sys
from collections.abc import Iterator
from typing import Any

import gymnasium
import numpy as np

from cwbench import envs
from cwbench.rollout.episodes import Envs, Lane, LaneSpec
from cwbench.rollout.numpy_policy import Actor
from cwbench.spec.actor_layout import ActorLayout
from cwbench.spec.config import EnvConfig, GymnasiumConfig
from cwbench.spec.tasks import Score, Task


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


class Burning(Countdown):
    """Whose own code fails."""

    def step(self, action: Any) -> Any:
        raise RuntimeError("the motor burns")


class Odd(Countdown):
    """Whose steps return something of another kind."""

    def __init__(self, **odd: Any) -> None:
        super().__init__()
        self.odd = odd

    def step(self, action: Any) -> Any:
        obs, reward, terminated, truncated, info = super().step(action)
        made = {"obs": obs, "reward": reward, "truncated": truncated, "info": info} | self.odd
        if isinstance(made["reward"], list):
            made["reward"] = np.array(made["reward"])
        if "exit" in made:
            sys.exit(3)
        if "old" in made:
            return obs, reward, terminated, info
        return made["obs"], made["reward"], terminated, made["truncated"], made["info"]


class Bounds(Countdown):
    """With one action of these bounds and this type."""

    def __init__(self, low: float, high: float, dtype: str) -> None:
        super().__init__()
        self.action_space = gymnasium.spaces.Box(low, high, (1,), np.dtype(dtype).type)


class Chance(Countdown):
    """Draws from its seeded generator, or from one that no seed reaches."""

    def __init__(self, *, seeded: bool) -> None:
        super().__init__()
        self.seeded = seeded

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        _, info = super().reset(seed=seed)
        rng = self.np_random if self.seeded else np.random.default_rng()
        return rng.normal(size=1), info


class Wandering(Countdown):
    """Draws a number again every 120 steps, from a generator that is not saved.

    It is an observation, or a reward.
    """

    def __init__(self, *, as_reward: bool = False) -> None:
        super().__init__()
        self.as_reward = as_reward

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.time, self.shown = 0, 0.0
        self.rng = np.random.default_rng(seed)
        return np.ones(1), {}

    def step(self, action: Any) -> Any:
        self.time += 1
        if self.time % 120 == 0:
            self.shown = self.rng.normal()
        obs, reward = (0.0, self.shown) if self.as_reward else (self.shown, 0.0)
        return np.array([obs]), reward, False, False, {"success": False}


class Early(Countdown):
    """Solved at the first step only; shows draws of its seeded generator."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        self.time = 0
        return super().reset(seed=seed)

    def step(self, action: Any) -> Any:
        self.time += 1
        return self.np_random.normal(size=1), 1.0, False, False, {"success": self.time == 1}


class Bare:
    """An environment by its methods alone."""

    observation_space = gymnasium.spaces.Box(-1, 1, (1,))
    action_space = gymnasium.spaces.Box(-1, 1, (1,))

    def reset(self, *, seed: int | None = None) -> Any:
        return np.zeros(1), {}

    def step(self, action: Any) -> Any:
        return np.zeros(1), 1.0, False, False, {"success": True}


class Refusing(gymnasium.Wrapper):  # type: ignore[misc]
    def __init__(self, env: Any) -> None:
        raise RuntimeError("needs a licence")


class Moving(gymnasium.Wrapper):  # type: ignore[misc]
    """Every episode of a MuJoCo environment has its own gravity, and bodies and sites elsewhere."""

    def reset(self, **kwargs: Any) -> Any:
        made = self.env.reset(**kwargs)
        bare = self.env.unwrapped
        draws, model = bare.np_random.uniform(0.1, 0.2, 3), bare.model
        model.body_pos[1], model.site_pos[:, 0], model.opt.gravity[2] = (
            draws[0],
            draws[1],
            -draws[2],
        )
        return made


def configured(*tasks: Task) -> EnvConfig:
    return envs.configure(GymnasiumConfig(), tasks)


COUNTDOWN = Task("countdown", Countdown, horizon=10)


PENDULUM = Task("pendulum", "Pendulum-v1", score=Score(-1200.0, 0.0), horizon=50)


def lane(config: EnvConfig, *names: str) -> Lane:
    dims = envs.dims(config)
    shapes = {"actor.0.bias": (2 * dims.action,)}
    actor = Actor(ActorLayout(shapes, 0, 0), np.zeros(2 * dims.action, np.float32))
    cycle = tuple(enumerate(names))
    return Lane(LaneSpec(0, 3, 0, 0, cycle, 10_000, ()), Envs(config), actor)


def rows(config: EnvConfig, steps: int) -> Any:
    return np.zeros((steps, envs.dims(config).width), np.float32)
