"""A pool of one worker, and memory that it can read."""

from collections.abc import Callable, Iterator

import pytest
from point_lanes import LAYOUT

from cwbench.rollout.pool import Pool
from cwbench.rollout.shared_memory import ArrayRef, SharedArray
from cwbench.spec.actor_layout import Floats


@pytest.fixture
def pool() -> Iterator[Pool]:
    """One worker, so that whatever it does has an order."""
    with Pool(1) as pool:
        yield pool


@pytest.fixture
def shared() -> Iterator[Callable[..., ArrayRef]]:
    """Puts policies where workers can read them."""
    made: list[SharedArray] = []

    def share(*rows: Floats) -> ArrayRef:
        made.append(SharedArray((len(rows), LAYOUT.size)))
        made[-1].array[:] = rows
        return made[-1].ref

    yield share
    for memory in made:
        memory.close()
