"""Where the time of a step goes."""

from typing import Any, cast

import pytest
import torch

from cwbench.bench.timeline import Clock, Cycle, Span, Timeline, covered


def test_parts_of_a_step_are_weighted_by_steps() -> None:
    """A chunk of one step follows each evaluation, and is not a fiftieth of all steps."""
    timeline = Timeline(cast(Any, None), 0, 0, 1)
    timeline._clock = Clock(torch.device("cpu"))
    timeline.groups, timeline.ended = [cast(Any, None)], 100.0
    timeline._cycles = [
        Cycle(0, 49, 0.0, 4.9, 5.0, updates=[5.0, 5.0]),
        Cycle(0, 1, 5.0, 5.1, 5.1, updates=[5.2, 10.2]),
        Cycle(0, 50, 10.2, 15.2, 15.2, updates=[15.2, 20.2]),
    ]
    parts = timeline.parts()
    assert parts["collect"] == pytest.approx(1e6 * 5.0 / 50)
    assert parts["updates"] == pytest.approx(1e6 * 5.0 / 50)
    assert sum(parts.values()) == pytest.approx(1e6 * 10.2 / 50)


def test_time_in_which_two_overlap_counts_once() -> None:
    spans = [Span("learn", 0, 0.0, 3.0), Span("learn", 1, 2.0, 4.0), Span("learn", 0, 6.0, 7.0)]
    assert covered(spans) == 5.0
