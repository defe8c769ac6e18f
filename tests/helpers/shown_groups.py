"""Groups as progress sees them, without training, and a clock that tests set."""

import itertools
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from cwbench.fleet.state import RunState
from cwbench.planning.fleet_time import Parallelism
from cwbench.planning.forecast import Forecast, steps_alone

NUMBERS = itertools.count()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """The time that progress sees, to be changed in place."""
    now = [0.0]
    with monkeypatch.context() as patch:
        for module in ("progress", "displays"):
            patch.setattr(f"cwbench.fleet.{module}.time", SimpleNamespace(monotonic=lambda: now[0]))
        yield now


def make_group(steps: int, method: str = "ewc", successes: Sequence[float] = (0.0, 0.5)) -> Any:
    """Of two runs, past its first updates."""
    number = next(NUMBERS)
    segments = [
        SimpleNamespace(id=f"{number}{task}", tasks=("a", task), steps=steps, parents=())
        for task in "bc"
    ]
    return SimpleNamespace(
        step=0,
        steps=steps,
        runs=2,
        position=1,
        settled=True,
        retraining=None,
        ended=False,
        setup=SimpleNamespace(method=method),
        segments=segments,
        state=SimpleNamespace(runs=[RunState(last_success=success) for success in successes]),
    )


def steps_of(*groups: Any, resumed: Any = None) -> Forecast:
    """Without an estimate, all steps count alike."""
    segments = [group.segments for group in groups]
    needs = [steps_alone(group.segments, group.steps) for group in groups]
    return Forecast(segments, needs, Parallelism(), resumed, measured=False)
