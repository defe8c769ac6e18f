"""A point in the plane that must reach a goal: tasks that train in seconds, for demos and tests.

A task's name is `reach-GOAL-SCALE`: the goal is one of eight points on a circle, numbered from the
right, counter-clockwise; rewards are multiplied by the scale. The goal is not observed, so two
tasks want different actions in the same states and only the head tells them apart.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cwbench.envs.suite import Drawable, Frame, Suite
from cwbench.spec.config import PointMassConfig

Floats = NDArray[np.float32]


class PointMass:
    """Observations and actions are as wide as Meta-World's; only their first two numbers matter."""

    def __init__(self, task: str, config: PointMassConfig) -> None:
        _, goal, scale = task.split("-")
        angle = 2 * math.pi * int(goal) / 8
        self.goal = 0.7 * np.array([math.cos(angle), math.sin(angle)])
        self.task, self.scale, self.horizon = task, float(scale), config.horizon
        self.position = np.zeros(2)
        self.time = self.horizon

    def reset(self, rng: np.random.Generator) -> Floats:
        self.position = rng.uniform(-0.3, 0.3, 2)
        self.time = 0
        return self._observe()

    def _observe(self) -> Floats:
        obs = np.zeros(12, np.float32)
        obs[:2] = self.position
        return obs

    def step(self, action: Floats) -> tuple[Floats, float, bool, bool, bool]:
        if self.time >= self.horizon:
            raise ValueError("the episode is over; call reset")
        self.position = np.clip(self.position + 0.1 * action[:2].astype(float), -1, 1)
        self.time += 1
        distance = float(np.linalg.norm(self.position - self.goal))
        success = distance < 0.15
        return (
            self._observe(),
            self.scale * (success - distance),
            success,
            False,
            self.time == self.horizon,
        )

    def save(self) -> dict[str, NDArray[Any]]:
        return {"position": self.position.copy(), "time": np.array(self.time)}

    def load(self, state: Mapping[str, NDArray[Any]]) -> None:
        older = state.get("place")  # its name in snapshots of version 0.2
        self.position = np.array(state["position"] if older is None else older)
        self.time = int(state["time"])


def drawable(task: str, config: PointMassConfig, size: tuple[int, int]) -> Drawable:
    """The goal as a green disc, the point as a blue one."""
    env, (width, height) = PointMass(task, config), size
    reach = 1.1 * np.array(size) / min(size)  # a unit is as long across as up
    x, y = np.meshgrid(
        np.linspace(-reach[0], reach[0], width), np.linspace(reach[1], -reach[1], height)
    )

    def draw() -> Frame:
        frame = np.full((height, width, 3), 255, np.uint8)
        for centre, radius, colour in (
            (env.goal, 0.15, (0, 158, 115)),
            (env.position, 0.05, (0, 114, 178)),
        ):
            frame[(x - centre[0]) ** 2 + (y - centre[1]) ** 2 < radius**2] = colour
        return frame

    return Drawable(env, draw)


SUITE = Suite(
    PointMassConfig,
    PointMass,
    lambda config: (12, 4),
    env_bytes=lambda task, config: 1 << 10,
    drawable=drawable,
)
