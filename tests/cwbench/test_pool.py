"""Worker processes: what they do first, what they wait for, and what they do meanwhile."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from cwbench import methods
from cwbench.actor import Actor, Floats, Layout
from cwbench.config import EnvConfig, MethodConfig, NetworkConfig, SACConfig, ScheduleConfig
from cwbench.envs import pointmass
from cwbench.fleet import Fleet
from cwbench.nets import make_policy
from cwbench.pool import Pool
from cwbench.results import Store
from cwbench.segment import Segment, Setup
from cwbench.workers import Envs, EvalJob, Evaluation, generator

LAYOUT = Layout(make_policy(12, 4, 8, 2, 0).network.shapes(1), 2, 0)
ENV = EnvConfig(horizon=20)
CPU = torch.device("cpu")


@pytest.fixture
def pool() -> Iterator[Pool]:
    """One worker, so that whatever it does has an order."""
    with Pool(1, 4, pointmass.make) as pool:
        yield pool


def job(weights: Floats, episodes: int = 3) -> dict[str, Any]:
    return {
        "seed": 0,
        "purpose": "evaluate",
        "place": (0, 0, 0),
        "task": "reach-0-1",
        "head": 0,
        "episodes": episodes,
        "layout": LAYOUT,
        "weights": weights,
    }


class Counted(pointmass.PointMass):
    moves = 0

    def reset(self, rng: np.random.Generator) -> Floats:
        Counted.moves += 1
        return super().reset(rng)

    def step(self, action: Floats) -> tuple[Floats, float, bool, bool]:
        Counted.moves += 1
        return super().step(action)


def test_an_evaluation_in_slices_equals_all_episodes_at_once() -> None:
    rng, episodes = np.random.default_rng(0), 3
    weights = rng.standard_normal(LAYOUT.size, np.float32)
    evaluation = Evaluation(EvalJob(key=7, **job(weights)), Envs(Counted, ENV), 4)
    result, calls, before = None, 0, Counted.moves
    while result is None:
        result = evaluation.advance()
        calls += 1
        assert Counted.moves - before <= calls  # one at a time
    assert Counted.moves - before == episodes * (1 + ENV.horizon)

    rngs = [generator(0, "evaluate", 0, 0, 0, episode) for episode in range(episodes)]
    fleet = [pointmass.make("reach-0-1", ENV) for _ in rngs]
    obs = np.stack([env.reset(rng) for env, rng in zip(fleet, rngs, strict=True)])
    noise = np.stack([rng.standard_normal((ENV.horizon, 4), np.float32) for rng in rngs], 1)
    totals, success = np.zeros(episodes), np.zeros(episodes, bool)
    for time in range(ENV.horizon):
        for index, action in enumerate(Actor(LAYOUT, weights).act(obs, 0, noise[time])):
            obs[index], reward, reached, _ = fleet[index].step(action)
            totals[index] += reward
            success[index] |= reached
    assert (result.key, result.steps) == (7, episodes * ENV.horizon)
    assert (result.successes, result.mean_return) == (success.sum(), totals.mean())


def make_fleet(pool: Pool, root: Path, seed: int) -> Fleet:
    network, sac = NetworkConfig(width=8), SACConfig(batch_size=8)
    schedule = ScheduleConfig(60, 30, 2, 10, 20, 10)
    setup = Setup("finetuning", MethodConfig(), sac, network, ENV, schedule)
    segments = [Segment(setup, seed, ("reach-0-1",)), Segment(setup, seed + 1, ("reach-0-1",))]
    store = Store(root)
    for segment in segments:
        store.folder(segment).create(segment, {})
    method = methods.METHODS["finetuning"].method
    return Fleet(segments, method, store=store, pool=pool, device=CPU, obs_dim=12)


def test_one_evaluation_of_a_fleet_at_a_time(pool: Pool, tmp_path: Path) -> None:
    """Nobody receives between these starts but the starts themselves."""
    fleets = [make_fleet(pool, tmp_path, seed) for seed in (0, 10)]
    for fleet in fleets:
        fleet.request()
    first, second = fleets
    first.learn()
    for step in (3, 2, 1):
        first.step = step
        first.evaluator.start()
        assert len(pool._waiting) == 2  # one for each run
    second.learn()  # what was collected for it meanwhile has been kept
    second.evaluator.start()
    pool.finish_evaluations()
    assert second.step == 1
    for folder in first.folders:
        rows = (folder.path / "evals.csv").read_text().splitlines()[1:]
        assert [row.split(",")[0] for row in rows] == ["3", "2", "1"]
    for fleet in fleets:
        fleet.abandon()
