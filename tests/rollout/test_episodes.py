"""What training lanes count."""

from typing import Any

import numpy as np
import pytest

from cwbench.rollout.episodes import Envs, Episode, Lane, LaneSpec
from cwbench.spec.config import MetaWorldConfig
from cwbench.spec.transition import Dims


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


class Counting:
    """Shows and pays the number of the step, after tens of the episode. The first episode ends in a
    terminal state after two steps, others at their time limit after three."""

    def __init__(self) -> None:
        self.episode, self.drawn = 0, list[float]()

    def observed(self) -> Any:
        return np.full(12, 10 * self.episode + self.time, np.float32)

    def reset(self, rng: Any) -> Any:
        self.episode, self.time = self.episode + 1, 0
        self.drawn.append(rng.random())
        return self.observed()

    def step(self, action: Any) -> Any:
        self.time += 1
        terminated = self.episode == 1 and self.time == 2
        return self.observed(), float(self.time), False, terminated, self.time == 3


def rolled_out(position: int) -> tuple[dict[str, Any], list[float]]:
    """Five transitions, by name, and what resets drew."""
    env: Any = Counting()
    envs = Envs(MetaWorldConfig(horizon=3), lambda task, _: env)
    envs.dims = Dims(12, 4, terminates=True)
    lane: Any = Lane(LaneSpec(0, 7, position, 0, ((0, "push"),), 100, ()), envs, None)  # type: ignore[arg-type]
    rows = np.zeros((5, envs.dims.width), np.float32)
    lane.collect(rows)
    return envs.dims.unpack(rows), env.drawn


def test_transitions_lead_to_the_next_state_and_only_terminal_ones_say_so() -> None:
    rows, _ = rolled_out(0)
    assert rows["obs"][:, 0].tolist() == [10, 11, 20, 21, 22]
    assert rows["next_obs"][:, 0].tolist() == [11, 12, 21, 22, 23]
    assert rows["reward"].tolist() == [1, 2, 1, 2, 3]
    assert rows["terminated"].tolist() == [0, 1, 0, 0, 0]  # not at the time limit


def test_every_episode_of_every_task_has_its_own_draws() -> None:
    first, second = rolled_out(0), rolled_out(1)
    assert len({*first[1], *second[1]}) == 3 + 3  # resets; the third episode has begun
    actions = np.concatenate([rows["action"][[0, 2], 0] for rows, _ in (first, second)])
    assert len({*actions.tolist()}) == 4  # the first of each episode
    assert np.abs(first[0]["action"]).max() <= 1 and first[0]["action"].min() < -0.5


class Graded:
    """Episodes of three steps; every reward is the action's first entry."""

    def reset(self, rng: Any) -> Any:
        self.time = 0
        return np.zeros(12, np.float32)

    def step(self, action: Any) -> Any:
        self.time += 1
        return np.zeros(12, np.float32), float(action[0]), 0, False, self.time == 3


def test_old_heads_explore_once_in_order_then_the_one_with_the_best_mean_return() -> None:
    """The second one's episodes are worth 0.9 and 0.05: a larger sum, and a smaller mean, than the
    third one's 0.5. After 15 steps the task's own head acts."""
    worth = {0: [0.1], 1: [0.9, 0.05], 2: [0.5, 0.5], 3: [0.0]}
    chosen: list[int] = []

    class Heads:
        def act(self, obs: Any, head: int, noise: Any) -> Any:
            chosen.append(head)
            episode = (len(chosen) - 1) // 3
            earlier = [chosen[3 * i] for i in range(episode)].count(head)
            return np.full(4, worth[head][earlier] / 3, np.float32)

    env: Any = Graded()
    envs = Envs(MetaWorldConfig(horizon=3), lambda task, _: env)
    spec = LaneSpec(0, 0, 3, 0, ((3, "push"),), 15, (0, 1, 2))
    lane = Lane(spec, envs, Heads())  # type: ignore[arg-type]
    found = lane.collect(np.zeros((18, envs.dims.width), np.float32))
    assert chosen[::3] == [0, 1, 2, 1, 2, 3] and chosen[15:] == [3, 3, 3]
    assert [round(one.total, 2) for one in found] == [0.1, 0.9, 0.5, 0.05, 0.5, 0.0]
    # A worker that takes over after the third episode knows what was tried.
    tried = found[2].following.tried
    assert tried is not None
    np.testing.assert_allclose(tried, np.array([[1, 1, 1], [0.1, 0.9, 0.5]]))


def test_tasks_of_a_cycle_take_turns_of_a_horizon() -> None:
    """Four steps each, of episodes of three: every second one is cut, and counts for nothing."""
    env: Any = Graded()
    envs = Envs(MetaWorldConfig(horizon=4), lambda task, _: env)
    spec = LaneSpec(0, 0, 0, 0, ((0, "push"), (1, "hammer")), 100, ())
    lane: Any = Lane(spec, envs, None)  # type: ignore[arg-type]
    seen, complete = [], []
    for _ in range(16):
        found = lane.collect(np.zeros((1, envs.dims.width), np.float32))
        seen.append(lane.task)  # of the next step
        complete += [episode.complete for episode in found]
    assert seen == ["push"] * 3 + ["hammer"] * 4 + ["push"] * 4 + ["hammer"] * 4 + ["push"]
    assert complete == [True, False] * 4


def test_an_episode_says_whether_its_simulation_was_unstable() -> None:
    env: Any = SolvedOnce()
    assert not episode_of(env).unstable
    env.unstable = True
    assert episode_of(env).unstable
