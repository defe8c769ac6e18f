"""One gymnasium environment behind the interface of `cwbench.envs.suite.Env`."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cwbench.envs.gymnasium import state
from cwbench.envs.instability import was_reset
from cwbench.envs.suite import Frame, Observation, State
from cwbench.spec.errors import UserError
from cwbench.spec.failure import in_called_code, where_it_failed
from cwbench.spec.tasks import Task, imported, where_to_find
from cwbench.spec.text import counted

LARGEST = float(np.finfo(np.float32).max)  # transitions are stored with 32 bits
SUCCESS = ("success", "is_success")  # keys of `info` that tell it; the first that is there counts
STEP = ("observation", "reward", "terminated", "truncated", "info")


def build(task: Task) -> Any:
    """The gymnasium environment of a task, without the time limit of its registration."""
    try:
        return _made(task)
    except (Exception, SystemExit) as error:
        raise failed(task, error) from error


def failed(task: Task, error: BaseException) -> UserError:
    """One line about what a task's own code has raised, and where."""
    from gymnasium.envs import registration

    record = in_called_code(error, registration.__file__)
    return UserError(f"task {task.name}: {where_it_failed(record)}", _hint(task, record))


def _hint(task: Task, record: Mapping[str, Any]) -> str:
    if record["type"] == ModuleNotFoundError.__name__:
        return where_to_find(str(task.env))
    if "file" in record or record["type"] == UserError.__name__:  # it says what to correct
        return ""
    return "`id`, `kwargs` and `wrappers` must make an environment"


def _made(task: Task) -> Any:
    import gymnasium

    kwargs = dict(task.kwargs)
    if callable(task.env):
        env = task.env(**kwargs)
    else:
        # -1: no TimeLimit wrapper. `GymnasiumEnv` counts steps itself.
        env = gymnasium.make(task.env, max_episode_steps=-1, disable_env_checker=True, **kwargs)
    for wrapper in task.wrappers:
        table = wrapper if isinstance(wrapper, dict) else {"wrapper": wrapper}
        env = imported(table["wrapper"])(env, **table.get("kwargs", {}))
    return env


class GymnasiumEnv:
    """A task with scaled actions, padded observations, a score and an exact state.

    Where tasks of a sequence differ in size, observations are padded with zeros and surplus actions
    are ignored.
    """

    def __init__(self, task: Task, sizes: tuple[int, int]) -> None:
        self.task, self.env = task, build(task)
        self.horizon = task.horizon or 0
        self.obs_size = sizes[0]
        space = self.env.action_space
        self._actions = space.shape[0]
        self._bounds = space.low, space.high
        self._low = np.asarray(space.low, np.float64)
        self._scale = (np.asarray(space.high, np.float64) - self._low) / 2
        self._dtype = space.dtype
        self._steps = self.horizon  # no episode yet: `step` refuses
        self._total, self._success = 0.0, False
        self.told_success = False  # whether a step ever did

    def reset(self, rng: np.random.Generator) -> Observation:
        seed = int(rng.integers(2**31))
        try:
            made = self.env.reset(seed=seed)
        except (Exception, SystemExit) as error:
            raise failed(self.task, error) from error
        self._steps, self._total, self._success = 0, 0.0, False
        obs, _ = self._tuple("reset", made, ("observation", "info"))
        return self._padded(obs)

    def step(self, action: NDArray[np.float32]) -> tuple[Observation, float, float, bool, bool]:
        if self._steps >= self.horizon:
            raise RuntimeError(f"no episode of {self.task.name} is running: reset it first")
        own = np.clip(action[: self._actions].astype(np.float64), -1, 1)
        scaled = (self._low + (own + 1) * self._scale).astype(self._dtype)
        scaled = scaled.clip(*self._bounds)  # rounding may pass them in the last digit
        try:
            made = self.env.step(scaled)
        except (Exception, SystemExit) as error:
            raise failed(self.task, error) from error
        self._steps += 1
        obs, given, terminated, truncated, info = self._tuple("step", made, STEP)
        reward = self._number("reward", given)
        self._total += reward
        key = next((key for key in SUCCESS if key in info), None)
        if key is not None:
            self.told_success = True
            self._success |= bool(self._number(f'info["{key}"]', info[key]))
        terminated = bool(terminated)
        truncated = not terminated and (bool(truncated) or self._steps >= self.horizon)
        score = 0.0
        if terminated or truncated:
            self._steps = self.horizon
            score = self.task.score.of(self._total, self._success)
        return self._padded(obs), reward, score, terminated, truncated

    def _tuple(self, name: str, made: Any, parts: tuple[str, ...]) -> tuple[Any, ...]:
        """What `reset` or `step` returned, if it is what gymnasium asks for."""
        if isinstance(made, tuple) and len(made) == len(parts) and isinstance(made[-1], Mapping):
            return made
        raise UserError(
            f"task {self.task.name}: {name} does not return ({', '.join(parts)})",
            "it must follow gymnasium's interface; `info` is a dict",
        )

    def _number(self, name: str, value: Any) -> float:
        """A finite number, possibly in an array of one."""
        try:
            number = float(np.asarray(value, np.float64).item())
        except (TypeError, ValueError):
            raise UserError(f"task {self.task.name}: its {name} is not a number") from None
        if not math.isfinite(number):
            steps = counted(self._steps, "step")
            raise UserError(
                f"task {self.task.name}: its {name} is {number} after {steps}",
                "correct it in a wrapper",
            )
        if abs(number) > LARGEST:
            raise UserError(
                f"task {self.task.name}: its {name} is {number:g} after "
                f"{counted(self._steps, 'step')}, too large for 32 bits",
                "scale it in a wrapper",
            )
        return number

    def draw(self) -> Frame:
        """A picture, of an environment that was made in the mode rgb_array."""
        try:
            frame: Frame = np.asarray(self.env.render())
        except (Exception, SystemExit) as error:
            raise failed(self.task, error) from error
        if frame.dtype != np.uint8 or frame.shape[2:] != (3,):
            raise UserError(
                f"task {self.task.name}: render returns no picture in the mode rgb_array",
                "it must be an array [height, width, 3] of uint8",
            )
        return frame

    @property
    def unstable(self) -> bool:
        """Whether MuJoCo, if it simulates this task, has reset the simulation in this episode."""
        bare: Any = getattr(self.env, "unwrapped", None)
        return state.is_mujoco(bare) and was_reset(bare.data)

    def _padded(self, obs: Any) -> Observation:
        try:
            flat = np.asarray(obs, np.float32).ravel()
        except (TypeError, ValueError):
            raise UserError(f"task {self.task.name}: an observation is not numbers") from None
        if len(flat) != self.task.obs_size:
            raise UserError(
                f"task {self.task.name}: an observation has {counted(len(flat), 'number')} after "
                f"{counted(self._steps, 'step')}, and its space {self.task.obs_size}"
            )
        if not np.isfinite(flat).all():
            raise UserError(
                f"task {self.task.name}: an observation is not finite after "
                f"{counted(self._steps, 'step')}",
                "clip or correct it in a wrapper",
            )
        padded = np.zeros(self.obs_size, np.float32)
        padded[: len(flat)] = flat
        return padded

    def save(self) -> dict[str, NDArray[Any]]:
        """Empty where the environment's state cannot be read: then a new episode must begin."""
        if self.task.resume == "episode":
            return {}
        numbers = np.array([self._steps, self._total, self._success], np.float64)
        return {"numbers": numbers, "state": state.save(self.env)}

    def load(self, saved: State) -> None:
        self.env.reset(seed=0)  # wrappers refuse to step before a first reset
        state.load(self.env, saved["state"])
        steps, total, success = saved["numbers"].tolist()
        self._steps, self._total, self._success = int(steps), total, bool(success)
