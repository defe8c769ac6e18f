"""What an environment and a suite of them must offer; the trainer knows nothing else of either."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from cwbench.spec.config import EnvConfig
from cwbench.spec.tasks import Task

Observation = NDArray[np.float32]
State = Mapping[str, NDArray[Any]]
Frame = NDArray[np.uint8]  # [H, W, 3]


class Env(Protocol):
    """One environment. It holds no random generator: the caller passes one to every reset."""

    def reset(self, rng: np.random.Generator) -> Observation:
        """Start an episode; its first observation, [O], a new array that the caller may keep."""

    def step(self, action: NDArray[np.float32]) -> tuple[Observation, float, float, bool, bool]:
        """Observation [O], reward, score, terminated, truncated, for an action [A] in [-1, 1].

        An episode's score is the largest of its steps' scores, 0 to 1: success is a 1 at any step.
        An episode ends in a terminal state or, after a number of steps, truncated.
        """

    def save(self) -> dict[str, NDArray[Any]]:
        """The exact state in the middle of an episode, as plain arrays; empty if it has none."""

    def load(self, state: State) -> None:
        """Continue where `save` was called, on an environment of the same task and config."""


@runtime_checkable
class HasSuccessTests(Protocol):
    """An environment that knows several tests of success; evaluations count each of them."""

    def success_tests(self) -> Mapping[str, bool]:
        """Which tests the last step passes, by name."""


@dataclass(frozen=True)
class Drawable:
    """An environment that can be drawn."""

    env: Env
    draw: Callable[[], Frame]
    close: Callable[[], None] = lambda: None


@dataclass(frozen=True)
class Suite:
    """Environments that share options and sizes."""

    config_class: type[EnvConfig]
    make: Callable[[str, Any], Env]
    sizes: Callable[[Any], tuple[int, int]]  # config -> numbers in an observation, in an action
    # A worker's time for a step of a task relative to the suite's mean: shares lanes out evenly.
    step_cost: Callable[[str, Any], float] = lambda task, config: 1.0
    # A step's mean time in training relative to random actions: policies that learn touch things.
    contact_cost: float = 1.0
    # Memory of an environment of a task in a worker.
    env_bytes: Callable[[str, Any], int] = lambda task, config: 1 << 20
    terminates: bool = False  # whether episodes can end in terminal states
    # Completes a config with what a sequence's task definitions say.
    configure: Callable[[Any, Sequence[Task]], EnvConfig] = lambda config, tasks: config
    # An environment of a task that can be drawn, in (width, height) where that can be chosen.
    drawable: Callable[[str, Any, tuple[int, int]], Drawable] | None = None
