"""Which tasks a group's environments play, and where their transitions go."""

import torch

from cwbench.fleet import lanes
from cwbench.learner.replay import Replay
from cwbench.learner.rng import Streams
from cwbench.spec.config import (
    MethodConfig,
    NetworkConfig,
    PointMassConfig,
    SACConfig,
    ScheduleConfig,
)
from cwbench.spec.schedule import Exploration
from cwbench.spec.segment import Segment, Setup
from cwbench.spec.transition import Dims

WIDTH = 2 * 3 + 2 + 1  # three observations, two actions


def test_only_the_first_lane_of_a_run_explores() -> None:
    setup = Setup(
        "pm", MethodConfig(), SACConfig(), NetworkConfig(), PointMassConfig(), ScheduleConfig()
    )
    segments = [Segment(setup, seed, ("reach-0-1", "reach-2-1")) for seed in (3, 7)]
    made = lanes.specs(segments, [(1,), (0, 1)], Exploration(50, (0, 1)))
    assert [(one.run, one.seed, one.lane) for one in made] == [
        *((0, 3, 0), (0, 3, 1), (1, 7, 0), (1, 7, 1))
    ]
    assert [(one.explore_steps, one.explore_heads) for one in made] == 2 * [(50, (0, 1)), (0, ())]
    both = ((0, "reach-0-1"), (1, "reach-2-1"))
    assert [one.cycle for one in made] == 2 * [both[1:], both]


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
