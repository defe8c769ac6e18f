"""Runs that are larger than the memory."""

import pytest
from sample_results import small

from cwbench.planning.limits import check_weights
from cwbench.spec.errors import UserError
from cwbench.spec.segment import Segment


def test_weights_alone_may_be_too_large() -> None:
    """Four layers of 256 units: an actor of about 200,000 numbers and two such critics."""
    segments = [Segment(small("ewc").setup, seed, ("push",)) for seed in range(100)]
    check_weights(segments, 100 << 20)  # one run is counted, not a hundred
    with pytest.raises(UserError, match=r"one run of ewc needs at least 1\d\.. MiB"):
        check_weights(segments, 1 << 20)
