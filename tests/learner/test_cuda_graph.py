"""What of capturing does not need an accelerator; the rest is in test_cuda.py."""

import gc
import weakref

import pytest

from cwbench.learner.cuda_graph import _no_garbage


class Node:
    """Refers to itself, so that only a collection removes it."""

    def __init__(self) -> None:
        self.own = self


def test_garbage_goes_before_the_block_and_not_inside() -> None:
    before = weakref.ref(Node())
    with pytest.raises(ZeroDivisionError), _no_garbage():
        assert before() is None
        inside = weakref.ref(Node())
        _ = [[] for _ in range(1_000_000)]  # enough for Python to look for circles
        assert inside() is not None
        _ = 1 / 0
    assert gc.isenabled()


def test_collection_that_was_off_stays_off() -> None:
    gc.disable()
    try:
        with _no_garbage():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
