"""What training lanes count."""

from typing import Any

import numpy as np
import pytest

from cwbench.rollout.episodes import Envs, Episode, Lane, LaneSpec
from cwbench.spec.config import MetaWorldConfig


class SolvedOnce:
    """Solved at the first step only; episodes of three steps."""

    def reset(self, rng: Any) -> Any:
        self.time = 0
        return np.zeros(12, np.float32)

    def step(self, action: Any) -> Any:
        self.time += 1
        return np.zeros(12, np.float32), 1.0, self.time == 1, False, self.time == 3


def episode_of(env: Any, **options: Any) -> Episode:
    """One episode of three steps."""
    envs = Envs(MetaWorldConfig(horizon=3, **options), lambda task, _: env)
    spec = LaneSpec(0, 0, 0, 0, ((0, "push"),), 100, ())
    lane: Any = Lane(spec, envs, None)  # type: ignore[arg-type] # explores, so no policy acts
    [episode] = lane.collect(np.zeros((3, envs.dims.width), np.float32))
    found: Episode = episode
    return found


@pytest.mark.parametrize(("success", "score"), [("any", True), ("last", False)])
def test_an_episode_is_solved_at_any_step_or_at_the_last(success: Any, score: bool) -> None:
    episode = episode_of(SolvedOnce(), success=success)
    assert episode.score == score and episode.total == 3


def test_an_episode_says_whether_its_simulation_was_unstable() -> None:
    env: Any = SolvedOnce()
    assert not episode_of(env).unstable
    env.unstable = True
    assert episode_of(env).unstable
