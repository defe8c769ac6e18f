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


def test_every_episode_counts_for_itself() -> None:
    """The first of two is solved; each has three rewards of one."""
    env: Any = SolvedOnce()
    step, episodes = env.step, iter([0, 0, 0, 1, 1, 1])

    def solved_in_the_first(action: Any) -> Any:
        obs, reward, _, *ends = step(action)
        return obs, reward, next(episodes) == 0, *ends

    env.step = solved_in_the_first
    envs = Envs(MetaWorldConfig(horizon=3), lambda task, _: env)
    lane: Any = Lane(LaneSpec(0, 0, 0, 0, ((0, "push"),), 100, ()), envs, None)  # type: ignore[arg-type]
    found = lane.collect(np.zeros((6, envs.dims.width), np.float32))
    assert [(episode.score, episode.total) for episode in found] == [(True, 3), (False, 3)]


def test_an_episode_says_whether_its_simulation_was_unstable() -> None:
    env: Any = SolvedOnce()
    assert not episode_of(env).unstable
    env.unstable = True
    assert episode_of(env).unstable
