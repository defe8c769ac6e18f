"""Transitions of a finished task as files: whose they are, and what a budget keeps."""

from pathlib import Path

import pytest
import torch

from cwbench.fleet import old_replay
from cwbench.learner.replay import Replay
from cwbench.learner.rng import Streams
from cwbench.spec.config import (
    MethodConfig,
    NetworkConfig,
    PointMassConfig,
    SACConfig,
    ScheduleConfig,
)
from cwbench.spec.segment import Segment, Setup
from cwbench.spec.transition import Dims
from cwbench.store.results import Store

TASKS, DIMS = ("reach-0-1", "reach-2-1"), Dims(1, 1)
SETUP = Setup(
    "finetuning", MethodConfig(), SACConfig(), NetworkConfig(), PointMassConfig(), ScheduleConfig()
)


@pytest.mark.parametrize("limit", [None, 10])
def test_runs_keep_their_own_rows_or_random_ones_with_their_annotations(
    limit: int | None, tmp_path: Path
) -> None:
    """Transition n of run r is filled with n + 100 r, and its annotation is twice that."""
    store = Store(tmp_path)
    segments = [Segment(SETUP, seed, TASKS) for seed in (3, 4)]
    replay = Replay(2, 40, DIMS, Streams([3, 4], 0, torch.device("cpu")), live=[0])
    numbers = torch.arange(40.0) + torch.tensor([[0.0], [100.0]])
    replay.add(0, numbers.unsqueeze(-1).expand(-1, -1, DIMS.width))
    replay.add_annotations("policy", 2 * numbers.unsqueeze(-1))
    for run, segment in enumerate(segments):
        first = segment.ancestor(0)
        store.folder(first).create(first, {})
        old_replay.keep(store.folder(first), replay, 0, run, limit)
    kept = old_replay.load(store, [*segments, segments[0]], 0)
    assert kept.slot == [0, 1, 0]  # the third run begins as the first did: its rows are there once
    for run, (rows, notes) in enumerate(zip(kept.shards, kept.annotations, strict=True)):
        assert torch.equal(notes["policy"][:, 0], 2 * rows[:, 0])
        if limit is None:
            assert torch.equal(rows[:, 0], numbers[run])
        else:
            assert len(rows[:, 0].unique()) == 10 and set(rows[:, 0].tolist()) < {
                *numbers[run].tolist()
            }
            assert rows[:, 0].max() - 100 * run > 20  # not the oldest ones
    few = old_replay.load(store, segments, 0, limit=4)
    assert all(torch.equal(a, b[:4]) for a, b in zip(few.shards, kept.shards, strict=True))
