"""What a worker does while weights are on their way, and without a parent."""

import subprocess
import sys
from collections.abc import Callable

import torch
from point_lanes import CPU, actions, finish_evaluations, heading, job, open_lanes

from cwbench.fleet.weight_sync import WeightPublisher
from cwbench.rollout.episodes import EvalResult
from cwbench.rollout.pool import Pool
from cwbench.rollout.shared_memory import ArrayRef


def test_a_worker_evaluates_until_the_weights_are_there(
    pool: Pool, shared: Callable[..., ArrayRef]
) -> None:
    collector = open_lanes(pool)
    publisher = WeightPublisher(collector.weights.array, collector.version.array, CPU)
    publisher.start(torch.from_numpy(heading(-1))[None])
    collector.request(5, publisher.version + 1)
    results: list[EvalResult] = []
    pool.evaluate(job(shared(heading(1))), results.append)
    finish_evaluations(pool)
    # Collecting goes first, so it would have come before the evaluation.
    assert len(results) == 1 and not collector.episodes
    publisher.start(torch.from_numpy(heading(1))[None])
    chunk, _ = collector.receive()
    assert (actions(chunk) == 1).all()
    collector.close()


def test_a_worker_collects_for_another_group_meanwhile(pool: Pool) -> None:
    late, ready = open_lanes(pool), open_lanes(pool)
    ready.weights.array[:] = heading(-1)
    late.request(5, 1)
    ready.request(5, 0)
    chunk, _ = ready.receive()
    assert (actions(chunk) == -1).all() and not late.episodes
    late.weights.array[:] = heading(1)
    late.version.array[:] = 1
    chunk, _ = late.receive()
    assert (actions(chunk) == 1).all()
    for collector in (late, ready):
        collector.close()


def test_a_worker_whose_parent_is_gone_ends_quietly() -> None:
    """The array it shares with the parent went with it."""
    code = (
        "from multiprocessing import Pipe\n"
        "from cwbench.rollout.shared_memory import SharedArray\n"
        "from cwbench.rollout.worker import work\n"
        "(connection, _), beats = Pipe(), SharedArray((2,))\n"
        "beats.close()\n"
        "work(connection, None, beats.ref)\n"
    )
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (made.returncode, made.stderr) == (0, "")
