"""How a flat vector holds an actor's weights, and what torch and numpy must agree on."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cwbench.spec.config import Activation, LogStd, NetworkConfig

# Facts of the networks that torch and numpy must agree on.
LEAK = 0.2  # as in the reference; torch's default would be 0.01
NORM_EPS = 1e-3  # likewise; torch's default would be 1e-5

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class ActorLayout:
    """How a flat vector holds one run's actor."""

    shapes: Mapping[str, tuple[int, ...]]  # in order; heads have a leading task axis
    layers: int
    head_layers: int
    activation: Activation = "leaky-relu"
    log_std: LogStd = "clip"
    log_std_range: tuple[float, float] = (-20.0, 2.0)
    # Of an actor of another architecture: its forward pass by value, and its options.
    compute: bytes = b""
    network: NetworkConfig | None = None

    @property
    def size(self) -> int:
        return sum(math.prod(shape) for shape in self.shapes.values())

    def views(self, flat: Floats) -> dict[str, Floats]:
        """The parts of a flat vector, by name, without copying."""
        parts, start = {}, 0
        for name, shape in self.shapes.items():
            end = start + math.prod(shape)
            parts[name] = flat[start:end].reshape(shape)
            start = end
        return parts
