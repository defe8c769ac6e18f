"""Worker processes: what they do first, what they wait for, and what they do meanwhile."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from point_lanes import CPU, ENV, LAYOUT, finish_evaluations, heading, job

from cwbench import methods
from cwbench.envs import pointmass
from cwbench.fleet.group import Group
from cwbench.learner.policy import make_policy
from cwbench.rollout.episodes import Envs, EvalResult, Evaluation, generator
from cwbench.rollout.numpy_policy import Actor
from cwbench.rollout.pool import Pool
from cwbench.rollout.shared_memory import ArrayRef, SharedArray
from cwbench.spec.actor_layout import Floats
from cwbench.spec.config import (
    MetaWorldConfig,
    MethodConfig,
    NetworkConfig,
    SACConfig,
    ScheduleConfig,
)
from cwbench.spec.segment import Segment, Setup
from cwbench.spec.transition import Dims
from cwbench.store.results import Store


class Counted(pointmass.PointMass):
    moves = 0

    def reset(self, rng: np.random.Generator) -> Floats:
        Counted.moves += 1
        return super().reset(rng)

    def step(self, action: Floats) -> tuple[Floats, float, bool, bool, bool]:
        Counted.moves += 1
        return super().step(action)


def test_an_evaluation_in_slices_equals_all_episodes_at_once(
    shared: Callable[..., ArrayRef],
) -> None:
    rng, episodes = np.random.default_rng(0), 3
    weights = rng.standard_normal(LAYOUT.size, np.float32)
    evaluation = Evaluation(job(shared(weights)), Envs(ENV, Counted))
    result, calls, before = None, 0, Counted.moves
    while result is None:
        result = evaluation.advance()
        calls += 1
        assert Counted.moves - before <= calls  # one at a time
    assert Counted.moves - before == episodes * (1 + ENV.horizon)

    rngs = [generator(0, "evaluate", 0, 0, 0, episode) for episode in range(episodes)]
    playing = [pointmass.PointMass("reach-0-1", ENV) for _ in rngs]
    obs = np.stack([env.reset(rng) for env, rng in zip(playing, rngs, strict=True)])
    noise = np.stack([rng.standard_normal((ENV.horizon, 4), np.float32) for rng in rngs], 1)
    totals, success = np.zeros(episodes), np.zeros(episodes, bool)
    for time in range(ENV.horizon):
        for index, action in enumerate(Actor(LAYOUT, weights).act(obs, 0, noise[time])):
            obs[index], reward, reached, _, _ = playing[index].step(action)
            totals[index] += reward
            success[index] |= reached
    assert result.steps == episodes * ENV.horizon
    assert (result.successes, result.mean_return) == (success.sum(), totals.mean())


def test_an_evaluation_acts_with_the_head_that_it_names() -> None:
    """The first of two heads always goes one way, the second the other."""
    layout = make_policy(12, 4, NetworkConfig(width=8, layers=2)).layout(2)
    weights, taken = SharedArray((1, layout.size)), []
    bias = layout.views(weights.array[0])["actor.2.bias"]
    bias[0, :4], bias[1, :4], bias[:, 4:] = 20, -20, -20

    class Watched(pointmass.PointMass):
        def step(self, action: Floats) -> tuple[Floats, float, bool, bool, bool]:
            taken.append(action.copy())
            return super().step(action)

    for head, way in ((0, 1), (1, -1)):
        taken.clear()
        asked = replace(job(weights.ref), head=head, layout=layout)
        evaluation = Evaluation(asked, Envs(ENV, Watched))
        while evaluation.advance() is None:
            pass
        assert len(taken) == 3 * ENV.horizon and (np.array(taken) == way).all()
    weights.close()


class WithTests(pointmass.PointMass):
    """Passes one test at a single step, the other at all others."""

    def success_tests(self) -> dict[str, bool]:
        return {"once": self.time == 2, "not then": self.time != 2}


def test_an_evaluation_counts_every_test_at_any_step_and_at_the_last(
    shared: Callable[..., ArrayRef],
) -> None:
    found = {}
    for env in (WithTests, pointmass.PointMass):
        evaluation, result = Evaluation(job(shared(heading(1))), Envs(ENV, env)), None
        while result is None:
            result = evaluation.advance()
        found[env] = result.more_successes
    once = {"once_any": 3, "once_last": 0}
    assert found[WithTests] == {**once, "not then_any": 3, "not then_last": 3}
    assert found[pointmass.PointMass] == {}


class SolvedBefore(pointmass.PointMass):
    """Solved at every step but the last."""

    def step(self, action: Floats) -> tuple[Floats, float, bool, bool, bool]:
        obs, reward, _, terminated, truncated = super().step(action)
        return obs, reward, self.success_tests()["v3"], terminated, truncated

    def success_tests(self) -> dict[str, bool]:
        return {"v3": self.time < self.horizon}


@pytest.mark.parametrize(("success", "scores"), [("any", [1, 1, 1]), ("last", [0, 0, 0])])
def test_scores_of_an_evaluation_are_counted_as_its_environment_counts(
    success: Any, scores: list[int], shared: Callable[..., ArrayRef]
) -> None:
    env = MetaWorldConfig(success=success, horizon=ENV.horizon)
    evaluation = Evaluation(replace(job(shared(heading(1))), env=env), Envs(ENV, SolvedBefore))
    while (result := evaluation.advance()) is None:
        pass
    assert evaluation.counted_scores == scores
    assert (result.successes, result.solved(env)) == (3, sum(scores))


def make_group(pool: Pool, root: Path, seed: int) -> Group:
    network, sac = NetworkConfig(width=8), SACConfig(batch_size=8)
    schedule = ScheduleConfig(60, 30, 2, 10, 20, 10)
    setup = Setup("finetuning", MethodConfig(), sac, network, ENV, schedule)
    segments = [Segment(setup, seed, ("reach-0-1",)), Segment(setup, seed + 1, ("reach-0-1",))]
    store = Store(root)
    for segment in segments:
        store.folder(segment).create(segment, {})
    method = methods.METHODS["finetuning"].method
    return Group(segments, method, store=store, pool=pool, device=CPU, dims=Dims(12, 4))


def test_one_evaluation_of_a_group_at_a_time(pool: Pool, tmp_path: Path) -> None:
    """Nobody receives between these starts but the starts themselves."""
    groups = [make_group(pool, tmp_path, seed) for seed in (0, 10)]
    for group in groups:
        group.request()
    first, second = groups
    first.learn()
    for step in (3, 2, 1):
        first.evaluator.start(step)
        assert len(pool._evaluations) == 2  # one for each run
    second.learn()  # what was collected for it meanwhile has been kept
    second.evaluator.start(second.step)
    finish_evaluations(pool)
    assert second.step == 1
    for folder in first.folders:
        rows = (folder.path / "evals.csv").read_text().splitlines()[1:]
        assert [row.split(",")[0] for row in rows] == ["3", "2", "1"]
    for group in groups:
        group.abandon()


def test_an_evaluation_reads_its_own_row(pool: Pool, shared: Callable[..., ArrayRef]) -> None:
    memory, results = shared(heading(-1), heading(1), heading(-1)), list[EvalResult]()
    for row in range(3):
        pool.evaluate(job(memory, row), results.append)
    finish_evaluations(pool)
    returns = [result.mean_return for result in results]  # one worker: in order
    assert returns[0] == returns[2] != returns[1]


def test_evaluations_go_to_workers_without_lanes_first(shared: Callable[..., ArrayRef]) -> None:
    """A lane comes first on its worker; an evaluation there would wait for it."""
    memory = shared(heading(1))
    with Pool(4) as pool:
        pool.load = [3.0, 0.5, 2.0, 0.0]
        for _ in range(6):
            pool.evaluate(job(memory), lambda result: None)
        assert [known.worker for known in pool._evaluations.values()] == [3, 1, 2, 0, 3, 1]
        finish_evaluations(pool)


SCRIPT = """
from cwbench.rollout.pool import Pool

print("begin", flush=True)
with Pool(2) as pool:
    pool.reset()  # every worker answers
print("end")
"""


def test_a_script_may_start_workers_at_its_top_level(tmp_path: Path) -> None:
    """Without `if __name__ == "__main__"`: workers do not import the script."""
    (tmp_path / "script.py").write_text(SCRIPT)
    command = [sys.executable, str(tmp_path / "script.py")]
    made = subprocess.run(command, capture_output=True, text=True)
    assert made.stdout == "begin\nend\n", made.stderr
