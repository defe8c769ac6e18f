"""How much slower a worker steps while the others step, too.

Cores that share caches, memory or a power limit slow each other down: on the 16 cores of a host
with an NVIDIA H200, a worker's step takes 1.7 times as long while all others step.
"""

from collections.abc import Sequence
from statistics import fmean, median

import numpy as np

from cwbench.rollout.collector import Collector
from cwbench.rollout.episodes import LaneSpec
from cwbench.rollout.pool import Pool
from cwbench.spec.actor_layout import ActorLayout, Floats
from cwbench.spec.segment import Segment

FEW_WORKERS = 4  # slow each other little; starting them takes seconds
SLOW = 0.1  # seconds of a step; measuring would take long
CHUNKS, CHUNK_SECONDS, LONGEST_CHUNK = 5, 0.1, 200


def crowding(
    segment: Segment, layout: ActorLayout, width: int, workers: int, step_seconds: float
) -> float:
    """A step's time with all workers busy, over that of one alone; rows have `width` numbers.

    One alone takes about `step_seconds`.
    """
    chunk = max(1, min(LONGEST_CHUNK, round(CHUNK_SECONDS / step_seconds)))
    with Pool(workers) as pool:
        alone, together = (
            _step_seconds(pool, segment, layout, width, range(runs), chunk) for runs in (1, workers)
        )
    return max(1.0, together / alone)


def random_weights(layout: ActorLayout, runs: int) -> Floats:
    """Weights of each run's policy: [runs, P].

    Not zeros, which would share one page of memory and stay in the processor's cache.
    """
    return 0.03 * np.random.default_rng(0).standard_normal((runs, layout.size), np.float32)


def slowdown(crowding: float, busy: float, workers: int) -> float:
    """Of each of `busy` workers, in proportion to the number of others."""
    if workers == 1:
        return 1.0
    return 1 + (crowding - 1) * (min(max(busy, 1), workers) - 1) / (workers - 1)


def _step_seconds(
    pool: Pool,
    segment: Segment,
    layout: ActorLayout,
    width: int,
    runs: Sequence[int],
    chunk: int,
) -> float:
    """Of each worker, if these runs have one each. The first chunk loads the simulator."""
    cycle = ((segment.position, segment.tasks[-1]),)
    lanes = [
        LaneSpec(run=run, seed=run, position=segment.position, lane=0, cycle=cycle) for run in runs
    ]
    collector = Collector(
        pool, lanes, layout, segment.setup.env, runs=len(lanes), longest=chunk, width=width,
        states={},
    )  # fmt: skip
    collector.weights.array[:] = random_weights(layout, len(lanes))
    seconds = []
    try:
        for _ in range(CHUNKS + 1):
            pool.collect_spans.clear()
            collector.request(chunk, 0)
            collector.receive()
            seconds.append(fmean(end - start for _, start, end in pool.collect_spans) / chunk)
    finally:
        collector.close()
    return median(seconds[1:])
