"""One environment: a task with its observation layout, its horizon and its exact state."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cwbench.envs.instability import resets
from cwbench.envs.mujoco_state import get_state, restore
from cwbench.spec.config import MetaWorldConfig

Vector = NDArray[Any]
Observation = NDArray[np.float32]
SuccessTest = Callable[[Any, Vector], bool]  # of a simulation and the 39 numbers

ACTION_DIM = 4
FASTEST_SQUARE = 1_000.0**2  # of all joints, in m/s and rad/s; beyond it a simulation is unstable
# Of Meta-World's 39 numbers, what Continual World shows: hand, two objects, goal; positions only.
CW12 = np.array([0, 1, 2, 4, 5, 6, 11, 12, 13, 36, 37, 38])


class RejectedError(ValueError):
    """Object and goal of a random vector are too close for the task."""


class MetaWorldEnv:
    """Holds no random generator: the caller passes one to every reset.

    `sim` is a Meta-World object with two more methods, `begin(rand_vec)` and `advance(action)`;
    `lean.py` and `stock.py` make them. Observations are new arrays that the caller may keep.
    """

    def __init__(
        self, task: str, config: MetaWorldConfig, sim: Any, v1_test: SuccessTest | None = None
    ) -> None:
        self.task = task
        self.config = config
        self.sim = sim
        self._v1_test = v1_test
        self._steps = config.horizon  # no episode yet: `step` refuses
        self._rand_vec: Vector | None = None
        self._shown: Vector = np.empty(0)  # the 39 numbers of the last observation
        self._success: bool | None = None  # of the last step
        self._blew_up = False  # in this episode
        self._speeds, self._resets = sim.data.qvel, resets(sim.data)
        self._holds = config.unstable == "hold"
        self._select = CW12 if config.obs == "cw12" else np.arange(39)
        self._hide_nail = config.obs == "cw12" and task == "hammer" and not config.hammer_nail

    def reset(self, rng: np.random.Generator) -> Observation:
        """Start an episode with a vector uniform in the task's box; the first observation, [O]."""
        box = self.sim._random_reset_space
        while True:
            try:
                return self._begin(rng.uniform(box.low, box.high))
            except RejectedError:
                continue

    def reset_to(self, rand_vec: ArrayLike) -> Observation:
        """Start the episode of a given vector: object and goal, or object alone, in metres."""
        vector = np.array(rand_vec, np.float64)
        box = self.sim._random_reset_space
        if vector.shape != box.low.shape or not np.all((box.low <= vector) & (vector <= box.high)):
            raise ValueError(
                f"{vector} is outside {self.task}'s box, {box.low} to {box.high}; "
                "`reset` draws a vector inside"
            )
        try:
            return self._begin(vector)
        except RejectedError:
            raise ValueError(
                f"object and goal of {vector} are closer than {self.task} allows; "
                "`reset` draws a vector that fits"
            ) from None

    def _begin(self, vector: Vector) -> Observation:
        self._steps = self.config.horizon  # a rejected vector leaves nothing to step in
        self._shown = self.sim.begin(vector.copy())
        self._rand_vec = vector
        self._steps = 0
        self._blew_up = False
        return self._layout(self._shown)

    def step(self, action: NDArray[np.float32]) -> tuple[Observation, float, bool, bool, bool]:
        """Observation [O], reward, success at this step; only the horizon ends an episode."""
        if self._steps >= self.config.horizon:
            raise RuntimeError(f"no episode of {self.task} is running: reset it first")
        # float32 even if the caller has float64: Meta-World's arithmetic depends on it.
        action = np.asarray(action, np.float32)
        if action.shape != (ACTION_DIM,):
            raise ValueError(f"an action has shape ({ACTION_DIM},), got {action.shape}")
        if not self._held:
            obs, reward, success = self.sim.advance(action)
            speeds = self._speeds
            self._blew_up |= not speeds.dot(speeds) < FASTEST_SQUARE  # or not a number
        if self._held:
            obs, reward, success = self._shown, 0.0, False
        self._steps += 1
        self._shown, self._success = obs, success
        return self._layout(obs), reward, success, False, self._steps == self.config.horizon

    def success_tests(self) -> dict[str, bool]:
        """Whether the last step passes Meta-World 3's test, and V1's for the ten tasks."""
        if self._success is None:
            raise RuntimeError(f"{self.task} has no step to test yet")
        if self._v1_test is None:
            return {"v3": self._success}
        passed = not self._held and self._v1_test(self.sim, self._shown)
        return {"v3": self._success, "v1": passed}

    @property
    def unstable(self) -> bool:
        """Whether the simulation became unstable in this episode, or MuJoCo has reset it."""
        return self._blew_up or any(counter.number for counter in self._resets)

    @property
    def _held(self) -> bool:
        return self._holds and self.unstable

    def _layout(self, obs: Vector) -> Observation:
        chosen: Observation = obs[self._select].astype(np.float32)
        if self._hide_nail:
            chosen[6:9] = 0
        return chosen

    def save(self) -> dict[str, Vector]:
        """The exact state in the middle of an episode, as plain arrays; about 6 KiB."""
        if self._rand_vec is None:
            raise RuntimeError(f"{self.task} has no state to save before its first reset")
        return {
            "rand_vec": self._rand_vec.copy(),
            "steps": np.array(self._steps),
            "simulator": get_state(self.sim),
            "shown": self._shown.copy(),
            "blew_up": np.array(self.unstable),
            **remembered(self.sim),
        }

    def load(self, state: Mapping[str, Vector]) -> None:
        """Continue where `save` was called, on an environment of the same task and config."""
        self.reset_to(state["rand_vec"])  # puts fixtures in place and rebuilds what is derived
        for key, value in state.items():
            remember(self.sim, key, value)
        restore(self.sim, state["simulator"])
        self._steps = int(state["steps"])
        if "shown" in state:  # snapshots of earlier versions lack it
            self._shown, self._blew_up = np.array(state["shown"]), bool(state["blew_up"])


def remembered(sim: Any) -> dict[str, Vector]:
    """Every number and array on the Python side of a simulation, copied.

    Arrays that MuJoCo owns are left out: they follow the simulation and must keep doing so.
    """
    found = {}
    for name, value in vars(sim).items():
        if isinstance(value, bool | int | float):
            found[f"plain.{name}"] = np.array(value)
        elif isinstance(value, np.generic) or (isinstance(value, np.ndarray) and is_owned(value)):
            found[f"numpy.{name}"] = np.array(value)
    return found


def remember(sim: Any, key: str, value: Vector) -> None:
    """Put one item of `remembered` back."""
    kind, _, name = key.partition(".")
    # Python's and numpy's scalars promote differently next to float32, so each stays what it was.
    if kind == "plain":
        setattr(sim, name, value.item())
    elif kind == "numpy":
        setattr(sim, name, np.array(value)[()])


def is_owned(array: Vector) -> bool:
    """Whether numpy owns the memory, not MuJoCo: such an array keeps its values."""
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    return base is None
