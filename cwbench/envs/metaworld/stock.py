"""Meta-World's own classes, driven through two calls: `begin` an episode, `advance` one step.

Both sides of the interface speak 39 numbers in double precision; `MetaWorldEnv` does the rest.
"""

from collections.abc import Callable
from typing import Any

from cwbench.envs.metaworld import success
from cwbench.envs.metaworld.env import MetaWorldEnv, RejectedError, Vector
from cwbench.spec.config import MetaWorldConfig

# Where Meta-World's v1 branch tests success with numbers that never, or hardly ever, pass: the
# object's start, a gripper's opening of 0, the peg's middle instead of its head (issue 571).
UNSOLVABLE = ("hand-insert", "peg-insert-side", "stick-push")


def make(task: str, config: MetaWorldConfig) -> MetaWorldEnv:
    """The environment of any of the fifty tasks, with Meta-World's stepping and rewards."""
    version = "v2" if config.reward == "v2" else "v1"
    mixin = SuccessOfV2 if version == "v1" and task in UNSOLVABLE else Stock
    sim = build(task, mixin, reward_version=version, horizon=config.horizon)
    return MetaWorldEnv(task, config, sim, success.V1.get(task))


class Stock:
    """Mixed into a Meta-World class, which steps and resets as it always does."""

    reset: Callable[[], tuple[Vector, dict[str, Any]]]
    step: Callable[[Vector], tuple[Vector, float, bool, bool, dict[str, Any]]]
    _last_rand_vec: Vector
    _asked = False

    def begin(self, rand_vec: Vector) -> Vector:
        """Reset to the episode of this vector; gives the first observation."""
        self._last_rand_vec = rand_vec
        return self.reset()[0]

    def advance(self, action: Vector) -> tuple[Vector, float, bool]:
        """One step; gives observation, reward and whether this step counts as solved."""
        obs, reward, _, _, info = self.step(action)
        return obs, float(reward), bool(info["success"])

    def reset_model(self) -> Any:
        self._asked = False
        return super().reset_model()  # type: ignore[misc]

    def _get_state_rand_vec(self) -> Vector:
        # Meta-World asks again while object and goal are too close. It would get the same vector
        # forever, so a second request means that the task rejects it.
        if self._asked:
            raise RejectedError
        self._asked = True
        return self._last_rand_vec


class SuccessOfV2(Stock):
    """With rewards of the v1 branch and success as with v2."""

    reward_function_version: str
    evaluate_state: Callable[[Vector, Vector], tuple[float, dict[str, Any]]]

    def advance(self, action: Vector) -> tuple[Vector, float, bool]:
        obs, reward, _ = super().advance(action)
        self.reward_function_version = "v2"
        success = self.evaluate_state(obs, action)[1]["success"]
        self.reward_function_version = "v1"
        return obs, reward, bool(success)


def build(task: str, mixin: type, *, reward_version: str, horizon: int, **attributes: Any) -> Any:
    """An instance of the task's class with the mixin in front and the goal visible."""
    base = stock_class(task)
    mixed = type(mixin.__name__ + base.__name__, (mixin, base), attributes)
    return make_sim(mixed, reward_version, horizon)


def make_sim(cls: type, reward_version: str, horizon: int) -> Any:
    sim = cls(reward_function_version=reward_version)
    show_goal(sim)
    sim.max_path_length = horizon
    return sim


def stock_class(task: str) -> type:
    """Meta-World's class of a task."""
    from metaworld.env_dict import ENV_CLS_MAP

    found: type = ENV_CLS_MAP[f"{task}-v3"]
    return found


def show_goal(sim: Any) -> None:
    """What `set_task` does for a multi-task benchmark, without generating fifty tasks first."""
    sim._partially_observable = False
    # Cached with a goal box of zeros; `step` would clip the goal to it.
    del sim.sawyer_observation_space
    sim.observation_space = sim.sawyer_observation_space
    sim._set_task_called = True
    sim._freeze_rand_vec = True
