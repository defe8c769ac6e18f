"""Which tasks a group's environments play, and where their transitions go."""

import torch

from cwbench.fleet import lanes
from cwbench.learner.replay import Replay
from cwbench.learner.rng import Streams
from cwbench.spec.transition import Dims

WIDTH = 2 * 3 + 2 + 1  # three observations, two actions


def test_transitions_go_to_the_position_of_their_episode() -> None:
    """Lane 0 plays position 2; lane 1 plays 0 and 1 in turns, in episodes of four steps."""
    streams = Streams([0, 1], 2, torch.device("cpu"))
    replay = Replay(2, 20, Dims(3, 2), streams, live=[0, 1, 2])
    steps = torch.arange(10.0)[:, None].expand(-1, WIDTH)
    chunk = torch.stack([steps + 100 * lane for lane in range(4)])  # [R * lanes, n, F]
    for start, end in ((0, 3), (3, 10)):
        lanes.store(replay, chunk[:, start:end], [(2,), (0, 1)], start, 4)
    for run in range(2):
        stored = [(replay.stored(p)[run, :, 0] - 200 * run).tolist() for p in range(3)]
        assert stored == [[100, 101, 102, 103, 108, 109], [104, 105, 106, 107], list(range(10))]
