"""Policies that always go one way, and collectors of one lane on the point mass."""

import numpy as np
import torch

from cwbench.learner.policy import make_policy
from cwbench.rollout.collector import Collector
from cwbench.rollout.episodes import EvalJob, LaneSpec
from cwbench.rollout.pool import Pool
from cwbench.rollout.shared_memory import ArrayRef
from cwbench.spec.actor_layout import Floats
from cwbench.spec.config import (
    NetworkConfig,
    PointMassConfig,
)

LAYOUT = make_policy(12, 4, NetworkConfig(width=8, layers=2)).layout(1)


ENV = PointMassConfig(horizon=20)


CPU = torch.device("cpu")


def heading(way: float) -> Floats:
    """Weights of a policy that always goes the same way, 1 or -1, along every axis."""
    flat = np.zeros(LAYOUT.size, np.float32)
    mean_and_log_std = LAYOUT.views(flat)["actor.2.bias"]
    mean_and_log_std[..., :4], mean_and_log_std[..., 4:] = 20 * way, -20
    return flat


def actions(chunk: Floats) -> Floats:
    return chunk[..., 12:16]


def open_lanes(pool: Pool) -> Collector:
    lanes = [LaneSpec(0, 0, 0, 0, ((0, "reach-0-1"),), 0, ())]
    return Collector(pool, lanes, LAYOUT, ENV, runs=1, longest=5, width=29, states={})


def job(weights: ArrayRef, row: int = 0) -> EvalJob:
    return EvalJob(
        seed=0,
        purpose="evaluate",
        rng_key=(0, 0, 0),
        task="reach-0-1",
        head=0,
        episodes=3,
        env=ENV,
        layout=LAYOUT,
        weights=weights,
        row=row,
    )


def finish_evaluations(pool: Pool) -> None:
    """Wait for all that were asked for."""
    while pool._evaluations:
        pool.receive()
