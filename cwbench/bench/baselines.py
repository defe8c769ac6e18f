"""Stable-Baselines3's update of SAC, for `cwbench bench update` only."""

from collections.abc import Callable
from typing import Any

import numpy as np

OBS, ACTION = 12, 4
ROWS = 1000  # in the replay

Updates = Callable[[int], None]  # makes n updates


def stable_baselines(batch_size: int) -> Updates | None:
    """Stable-Baselines3's update of four layers of 256, which are plain ReLU there."""
    try:
        from stable_baselines3 import SAC
        from stable_baselines3.common.logger import Logger
    except ImportError:
        return None
    model = SAC(
        "MlpPolicy",
        _make_nothing(),
        policy_kwargs={"net_arch": [256] * 4},
        batch_size=batch_size,
        buffer_size=ROWS,
        device="cpu",
    )
    model.set_logger(Logger(None, []))
    rng = np.random.default_rng(0)
    for _ in range(ROWS):
        obs, next_obs = rng.normal(size=(2, 1, OBS))
        action = rng.uniform(-1, 1, (1, ACTION))
        model.replay_buffer.add(obs, next_obs, action, np.zeros(1), np.zeros(1), [{}])
    return lambda updates: model.train(updates, batch_size)


def _make_nothing() -> Any:
    """An environment of the right shape in which nothing happens."""
    import gymnasium

    class Nothing(gymnasium.Env):  # type: ignore[misc]
        observation_space = gymnasium.spaces.Box(-1, 1, (OBS,), np.float32)
        action_space = gymnasium.spaces.Box(-1, 1, (ACTION,), np.float32)

        def reset(self, **_: Any) -> tuple[Any, dict[str, Any]]:
            return np.zeros(OBS, np.float32), {}

        def step(self, _: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
            return np.zeros(OBS, np.float32), 0.0, False, False, {}

    return Nothing()
