"""Texts of values: what differs in any way has another one."""

import re
from argparse import Namespace
from functools import lru_cache, partial
from itertools import combinations
from types import SimpleNamespace
from typing import Any, Literal, NamedTuple

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box

from cwbench.spec.value_text import imported, value_text


class Point(NamedTuple):
    x: Any
    y: int = 0


def text(value: Any) -> str:
    found = value_text(value, text) or imported(value)
    assert found is not None
    return found


DIFFERENT = [
    *(1, 1.0, True, "1", b"1", 1j, None, -0.0, 0.0, ..., range(1), slice(1)),
    *([], (), {}, set(), [1], (1,), {1}, frozenset({1}), {1: None}, [[1]], ([1],)),
    *(np.float32(1), np.float64(1), np.int64(1), np.dtype("f4")),
    *(np.ones(1), np.ones(1, "f4"), np.ones((1, 1)), np.zeros(1), np.arange(4), np.arange(4)[::-1]),
    *(Point(1), Point(1.0), Point(1, 1), SimpleNamespace(x=1), Namespace(x=1), Namespace(x=2)),
    *(re.compile("a"), re.compile("a", re.I), re.compile(b"a"), re.compile("b")),
    *(list[int], list[float], int | None, Literal[1], Literal[True], int, type(None)),
]


def test_values_that_differ_have_different_texts() -> None:
    texts = [text(value) for value in DIFFERENT]
    assert [pair for pair in combinations(texts, 2) if len(set(pair)) == 1] == []
    assert texts == [text(value) for value in DIFFERENT]


def test_the_layout_in_memory_is_no_part_of_a_text() -> None:
    table = np.arange(6).reshape(2, 3)
    assert text(table) == text(np.asfortranarray(table))


@pytest.mark.parametrize("value", [object(), iter([]), re.finditer("", ""), np.array([None])])
def test_other_kinds_have_none(value: Any) -> None:
    assert value_text(value, text) is None


@pytest.mark.parametrize(
    "values",
    [
        (np.zeros(2, np.float32), np.zeros(2, np.int32), np.zeros(1, np.float64)),
        (np.zeros((2, 3)), np.zeros((3, 2)), np.ones((2, 3))),
        (torch.zeros(2), torch.zeros(2, dtype=torch.int32), torch.zeros(2, requires_grad=True)),
        (torch.zeros(2, 3), torch.zeros(3, 2), torch.ones(2, 3)),
        (partial(int, "7"), partial(int, "7", base=8), partial(int, "7", base=9)),
        (slice(1, 9), slice(1, 9, 2), slice(2, 9)),
        (re.compile("a"), re.compile("a", re.IGNORECASE), re.compile("b")),
        (property(len), property(len, max), property(len, None, max)),
        (lru_cache(8)(len), lru_cache(9)(len), lru_cache(8)(max)),
        (Box(0, 1, (2,)), Box(0, 2, (2,)), Box(-1, 1, (2,)), Box(0, 1, (2,), np.float64)),
    ],
    ids=lambda values: type(values[0]).__name__,
)
def test_values_that_differ_in_one_part_have_other_texts(values: tuple[Any, ...]) -> None:
    assert len({text(value) for value in values}) == len(values)
