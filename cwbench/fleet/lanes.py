"""The environments of a group: which tasks each one plays, and where its transitions go.

A lane is one environment of one run. It plays one position, or several in turns, an episode each.
"""

from collections.abc import Sequence

from torch import Tensor

from cwbench.learner.replay import Replay
from cwbench.rollout.episodes import LaneSpec
from cwbench.spec.schedule import Exploration
from cwbench.spec.segment import Segment

Positions = Sequence[Sequence[int]]  # of each lane of a run


def specs(
    segments: Sequence[Segment], positions: Positions, explore: Exploration
) -> list[LaneSpec]:
    """All lanes of all runs; only the first of a run explores."""
    return [
        LaneSpec(
            run=run,
            seed=segment.seed,
            position=segment.position,
            lane=lane,
            cycle=tuple((position, segment.tasks[position]) for position in cycle),
            explore_steps=explore.steps if lane == 0 else 0,
            explore_heads=explore.heads if lane == 0 else (),
        )
        for run, segment in enumerate(segments)
        for lane, cycle in enumerate(positions)
    ]


def store(replay: Replay, chunk: Tensor, positions: Positions, step: int, horizon: int) -> None:
    """Add transitions [R * lanes, n, F] from `step` on to the positions they belong to."""
    # As a whole: a part is not contiguous, and its copy would not be page-locked.
    chunk = chunk.to(replay.rows.device, non_blocking=True)
    chunk = chunk.view(-1, len(positions), *chunk.shape[1:])
    for lane, cycle in enumerate(positions):
        start, count = 0, chunk.shape[2]
        while start < count:
            episode, time = divmod(step + start, horizon)
            end = min(count, start + horizon - time) if len(cycle) > 1 else count
            replay.add(cycle[episode % len(cycle)], chunk[:, lane, start:end])
            start = end
