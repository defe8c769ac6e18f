"""What training lanes count."""

from typing import Any

import numpy as np
import pytest

from cwbench.rollout.episodes import Envs, Lane, LaneSpec
from cwbench.spec.config import MetaWorldConfig


class SolvedOnce:
    """Solved at the first step only; episodes of three steps."""

    def reset(self, rng: Any) -> Any:
        self.time = 0
        return np.zeros(12, np.float32)

    def step(self, action: Any) -> Any:
        self.time += 1
        return np.zeros(12, np.float32), 1.0, self.time == 1, False, self.time == 3


@pytest.mark.parametrize(("success", "score"), [("any", True), ("last", False)])
def test_an_episode_is_solved_at_any_step_or_at_the_last(success: Any, score: bool) -> None:
    config = MetaWorldConfig(horizon=3, success=success)
    envs = Envs(config, lambda task, _: SolvedOnce())  # type: ignore[arg-type,return-value]
    spec = LaneSpec(0, 0, 0, 0, ((0, "push"),), 100, ())
    lane: Any = Lane(spec, envs, None)  # type: ignore[arg-type] # explores, so no policy acts
    [episode] = lane.collect(np.zeros((3, envs.dims.width), np.float32))
    assert episode.score == score and episode.total == 3
