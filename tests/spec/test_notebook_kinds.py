"""The source of classes of notebooks: changes of every kind of code and value are seen."""

import copy
from typing import Any

import pytest

from cwbench.spec.notebook_source import source_hash

KINDS = """
import abc
import argparse
import contextlib
import enum
import functools
import logging
import math
import re
import torch
import torch.nn.functional as F
from dataclasses import InitVar, dataclass, field
from types import SimpleNamespace
from typing import ClassVar, Literal, NamedTuple, Protocol, TypeVar, cast
from cwbench.learner import Method

@dataclass(frozen=True, slots=True)
class Schedule:
    start: float = 10
    def __call__(self, step):
        return self.start + 11 * step

@dataclass(order=True)
class Item:
    name: str = field(compare=False)
    sizes: ClassVar = (12, 13)
    given: InitVar = 14
    __len__ = functools.partial(max, 15)

class Later(Schedule):
    start = 16

class Point(NamedTuple):
    x: float = 17
    def shifted(self):
        return self.x + 18

class Colour(enum.Enum):
    RED = 20
    BLUE = 21
    __offset = 23
    size = enum.nonmember(24)
    def mixed(self):
        return self.value + 22

class Meta(type):
    def __call__(cls):
        return 30

class Made(metaclass=Meta):
    @torch.no_grad()
    def __call__(self):
        return 31
    class Inner:
        size = 33
    __len__ = functools.partial(max, 34)
    __array_priority__ = 35

class Slotted:
    __slots__ = ("size",)
    def __init__(self):
        self.size = 36

class Straight(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 37 * x

class Sized(Protocol):
    size: int
    def scaled(self):
        return 38

def twice(function):
    @functools.wraps(function)
    def wrapper(*arguments):
        return 40 * function(*arguments)
    return wrapper

def once(function):
    return lambda *arguments: 41 * function(*arguments)

def scaled(factor):
    def penalty(self, x):
        return factor * x
    return penalty

@functools.cache
def cached(x):
    return x + 50

@contextlib.contextmanager
def context():
    yield 51

def marked(x):
    return marked.factor * x
marked.factor = 52

FACTOR, SIZES, PART = 60, {"a": (slice(0, 61), [1j, b"...", None])}, functools.partial(cached, 62)
RED, BOUND, SCHEDULE = Colour.RED, Schedule(63).__call__, Schedule(64)
FIRST, SECOND = scaled(65), scaled(66)
THE_ONE, LOSS, ROOT, KIND = SECOND, F.relu, math.sqrt, torch.float32
NAMES, LOG = re.compile("actor.42"), logging.getLogger("log 43")
ARGUMENTS = argparse.Namespace(coef=44, more=SimpleNamespace(size=45))
Choice, Made_T, POINT = Literal[46] | None, TypeVar("T", bound=list[int]), Point(47)

class Mine(Method):
    penalty = scaled(70)
    slow = property(functools.lru_cache(maxsize=71)(scaled), twice(scaled))

    @torch.no_grad()
    def on_task_start(self, position):
        return FACTOR + 80, SIZES, PART, Made, RED, BOUND, SCHEDULE, FIRST, SECOND, THE_ONE, marked

    @torch.inference_mode(mode=True)
    @twice
    def on_task_end(self, position):
        with context():
            return cached(position), LOSS, ROOT, KIND

    @once
    def at_interval(self):
        LOG.info(cast(Choice, 81), cast(Made_T, NAMES), POINT.shifted(), ARGUMENTS)
        return Item, Later, Slotted, Straight, Sized

    @property
    def rate(self):
        return 90

    @rate.setter
    def rate(self, value):
        self.found = value + 91

    @functools.cached_property
    def width(self):
        return 92

    @staticmethod
    def kept(x):
        return x + 93
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        *((str(number), f"{number}5") for number in (*range(10, 19), *range(20, 25), 30, 31)),
        *((str(number), f"{number}5") for number in (*range(33, 39), *range(40, 48))),
        *((str(number), f"{number}5") for number in (50, 51, 52, *range(60, 67), 70, 71)),
        *((str(number), f"{number}5") for number in (80, 81, 90, 91, 92, 93)),
        ("dataclass(order=True)", "dataclass(order=not True)"),
        ("field(compare=False)", "field(compare=not False)"),
        ("bound=list[int]", "bound=list[float]"),
        ("= scaled(70)", "= property(scaled(70))"),
        ("    penalty =", "    other ="),
        ("torch.inference_mode(mode=True)", "torch.inference_mode(mode=not True)"),
        ("THE_ONE, LOSS, ROOT, KIND = SECOND", "THE_ONE, LOSS, ROOT, KIND = FIRST"),
        ("F.relu", "F.elu"),
        ("math.sqrt", "torch.sqrt"),
        ("RED, BOUND, SCHEDULE = Colour.RED", "RED, BOUND, SCHEDULE = Colour.BLUE"),
        ("torch.float32", "torch.float64"),
        ("\ndef marked", "\n@functools.cache\ndef marked"),
        ("\nRED, BOUND", "\ncached = torch.no_grad()(cached)\nRED, BOUND"),
    ],
)
def test_code_and_values_of_every_kind_tell_results_apart(
    run_cell: Any, old: str, new: str
) -> None:
    assert KINDS.count(old) == 1
    codes = KINDS, KINDS, KINDS.replace(old, new)
    first, again, other = (source_hash(run_cell(code).Mine) for code in codes)
    assert first == again != other


def test_a_copied_object_leaves_the_id_of_its_class(run_cell: Any) -> None:
    """Python notes names of slots with the class when it copies or pickles an object."""
    module = run_cell(KINDS)
    before = source_hash(module.Mine)
    for made in (module.Slotted(), module.Schedule(), module.POINT):
        copy.copy(made)
    assert "__slotnames__" in vars(module.Slotted)
    assert source_hash(module.Mine) == before
