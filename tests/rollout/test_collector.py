"""Lanes of a group: late weights, closed lanes, and what a new worker repeats."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lost_workers import kill
from point_lanes import ENV, open_lanes
from torch import Tensor

from cwbench.fleet.weight_sync import WeightPublisher
from cwbench.rollout.collector import Collector, History
from cwbench.rollout.pool import Pool
from cwbench.store.runs import load_runs


def test_a_closed_group_is_not_waited_for(pool: Pool) -> None:
    gone, other = open_lanes(pool), open_lanes(pool)
    gone.request(5, 1)
    other.request(5, 0)
    other.receive()  # the worker has read what was sent before
    gone.close()
    gone.version.array[:] = 1
    other.request(5, 0)
    other.receive()
    assert not gone.episodes
    other.close()


class Late(WeightPublisher):
    """Weights on their way until somebody asks for them: meanwhile others lie there."""

    on_its_way: Tensor | None = None

    def start(self, x: Tensor) -> None:
        self._weights.fill_(9.0)
        self.on_its_way = x.clone()
        self.version += 1

    def check(self) -> None:
        self.wait()

    def wait(self) -> None:
        if self.on_its_way is not None:
            x, self.on_its_way, self.version = self.on_its_way, None, self.version - 1
            super().start(x)


def test_weights_that_arrive_late_change_no_number(
    toy_run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    toy_run(tmp_path / "at once", seeds=(0, 1))
    request, early = Collector.request, []

    def watched(self: Collector, steps: int, version: int) -> None:
        early.append(self.version.array[0] < version)
        request(self, steps, version)

    monkeypatch.setattr(Collector, "request", watched)
    monkeypatch.setattr("cwbench.fleet.group.WeightPublisher", Late)
    _, _, outcome = toy_run(tmp_path / "late", seeds=(0, 1), groups=2, snapshot_seconds=0)
    assert outcome.good and early and all(early), "a chunk is asked for before its weights arrive"
    at_once, late = (load_runs(tmp_path / name).evals for name in ("at once", "late"))
    assert len(late) == 2 * 3 * (1 + 2 + 3)
    assert late.equals(at_once)


def test_history_keeps_what_may_have_to_be_repeated() -> None:
    history = History(10)
    for first in (0, 3):  # two lanes, chunks of three steps and one action
        history.add(np.arange(first, first + 3, dtype=np.float32)[None, :, None].repeat(2, 0), 10)
    repeated = history.since(1, 12)
    assert history.step == 16 and repeated is not None
    assert repeated[:, 0].tolist() == [2, 3, 4, 5]
    history.add(np.full((2, 1, 1), 9, np.float32), 13)  # nobody goes back before step 13
    repeated = history.since(0, 13)
    assert repeated is not None and repeated[:, 0].tolist() == [3, 4, 5, 9]
    assert History(0).since(0, 0) is None


def test_lanes_are_balanced_and_given_back(pool: Pool) -> None:
    before = list(pool.load)
    collector = open_lanes(pool)
    assert pool.load[0] > before[0] and collector.workers == 1
    collector.close()
    assert pool.load == before and collector.key not in pool.collectors


@pytest.mark.filterwarnings("ignore:worker .* it is replaced:RuntimeWarning")
def test_a_lane_lost_at_an_episodes_end_can_be_saved(pool: Pool) -> None:
    """The next episode has begun, but no action of it has to be repeated."""
    collector, saved = open_lanes(pool), []
    for _ in range(ENV.horizon // 5):
        collector.request(5, 0)
        collector.receive()
    for lost in (False, True):
        if lost:
            kill(pool, 0)
        [state] = collector.save().values()
        saved.append({name: x.tolist() for name, x in state.items()})
    assert saved[0] == saved[1] and saved[0]["numbers"][:3] == [ENV.horizon, 1, 0]
    collector.close()
