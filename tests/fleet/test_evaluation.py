"""Evaluations that fail."""

import pytest
from point_lanes import finish_evaluations

from cwbench.rollout.episodes import EvalJob
from cwbench.rollout.pool import Pool, WorkerError
from cwbench.rollout.shared_memory import SharedArray
from cwbench.spec.actor_layout import ActorLayout
from cwbench.spec.config import PointMassConfig


def test_a_failed_evaluation_raises_and_leaves_the_worker_usable() -> None:
    shapes = {"actor.0.weight": (12, 8), "actor.0.bias": (8,)}
    layout = ActorLayout(shapes, 0, 0)
    weights = SharedArray((1, layout.size))
    job = EvalJob(
        seed=0,
        purpose="evaluate",
        rng_key=(0,),
        task="reach-x-1",
        head=0,
        episodes=1,
        env=PointMassConfig(),
        layout=layout,
        weights=weights.ref,
        row=0,
    )
    with Pool(1) as pool:
        pool.evaluate(job, lambda result: None)
        with pytest.raises(WorkerError, match="invalid literal"):
            finish_evaluations(pool)
        finish_evaluations(pool)  # nothing is left waiting
    weights.close()
