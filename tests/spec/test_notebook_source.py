"""The source of classes of notebooks and scripts: what changes numbers changes it."""

import itertools
import linecache
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from cwbench.spec.errors import UserError
from cwbench.spec.notebook_source import source_hash
from cwbench.spec.tasks import Task

CELL = """
from dataclasses import dataclass
from cwbench.learner import Method, MethodConfig, option

SCALE = 2.0
runs = object()  # unrelated, though the method uses an attribute of this name

def half(x):
    return SCALE * x / 4

@dataclass(frozen=True)
class MineConfig(MethodConfig):
    coef: float = option(1.0, "Strength.")

class Base(Method):
    def on_task_end(self, position):
        pass

class Mine(Base):
    config_class = MineConfig
    preset = {"lr": 1e-4}

    def actor_penalty(self, batch):
        return half(super().actor_penalty(batch)) * self.trainer.runs
"""


@pytest.fixture
def run_cell() -> Iterator[Any]:
    """Runs code as a notebook does: in a module without a file, known to linecache."""
    counter, made = itertools.count(), []

    def run(code: str, *, known: bool = True) -> ModuleType:
        name = f"notebook_{next(counter)}"
        module = sys.modules[name] = ModuleType(name)
        made.append(name)
        file = f"<{name}>"
        if known:
            linecache.cache[file] = (len(code), None, code.splitlines(keepends=True), file)
        exec(compile(code, file, "exec"), vars(module))
        return module

    yield run
    for name in made:
        del sys.modules[name]
        linecache.cache.pop(f"<{name}>", None)


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("\nSCALE", "\n# a comment\n\nSCALE", True),
        ("object()", "[1, 2]", True),
        ("x / 4", "x / 5", False),
        ("SCALE = 2.0", "SCALE = 3.0", False),
        ("option(1.0", "option(2.0", False),
        ('"lr": 1e-4', '"lr": 1e-3', False),
        ("        pass", "        return None", False),
        ("* self.trainer.runs", "* 2 * self.trainer.runs", False),
    ],
)
def test_the_source_of_a_notebooks_class_tells_its_results_apart(
    run_cell: Any, old: str, new: str, same: bool
) -> None:
    """What the class uses counts, what only stands in the same notebook does not."""
    changed = CELL.replace(old, new)
    assert changed != CELL
    before, after = (source_hash(run_cell(code).Mine) for code in (CELL, changed))
    assert (before == after) == same


VALUES = """
import numpy as np
import torch
from dataclasses import dataclass, field
from cwbench.learner import Method, MethodConfig

TABLE = np.arange(5000)
CURVE = torch.full((3,), 0.5, dtype=torch.float64)
LAYER = torch.nn.Linear(2, 1)
LAYER.weight.data.fill_(3)
LAYER.bias.data.fill_(0)

@dataclass(frozen=True)
class Schedule:
    times: tuple = (1, 2)

def scaled(coef):
    def penalty(self, batch, *, shift=(10.0,), power=20):
        return coef * super(Mine, self).actor_penalty(batch)
    return penalty

@dataclass(frozen=True)
class MineConfig(MethodConfig):
    parts: list = field(default_factory=list)

class Mine(Method):
    config_class = MineConfig
    actor_penalty = scaled(2.0)
    names = {"a", "b", "c", "d", "e"}
    curve = CURVE
    by_name = {"table": TABLE, "layer": LAYER, "when": Schedule()}

    def on_task_end(self, position, count=100):
        return None
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("scaled(2.0)", "scaled(2.5)"),  # in a closure
        ("arange(5000)", "arange(5000) + (np.arange(5000) == 2500)"),  # where numpy shows dots
        ("0.5, dtype", "0.5 + 1e-9, dtype"),  # which torch rounds
        ("fill_(3)", "fill_(4)"),
        ("Schedule()", "Schedule((1, 3))"),
        ("default_factory=list", "default_factory=tuple"),
    ],
)
def test_values_that_a_notebooks_class_uses_tell_its_results_apart(
    run_cell: Any, old: str, new: str
) -> None:
    changed = VALUES.replace(old, new)
    assert VALUES.count(old) == 1
    first, again, other = (source_hash(run_cell(code).Mine) for code in (VALUES, VALUES, changed))
    assert first == again != other


OBJECTS = """
import abc
import enum
import functools
import torch
from typing import NamedTuple
from cwbench.learner import Method

class Schedule(NamedTuple):
    a: float
    def strength(self):
        return self.a * 11

class Holder(abc.ABC):
    def __init__(self, k):
        self.k = k
    def same(self):
        return self.k
    def __repr__(self):
        return "a holder"

class Silent:
    __slots__ = ("k",)
    def __init__(self, k):
        self.k = k

class Table(dict):
    def best(self):
        return self["a"] + 31

class Layer(torch.nn.Module):
    scale = 41
    def __init__(self):
        super().__init__()
        self.power, self._offset = 42, 44
    def forward(self, x):
        return x + 43

class Colour(enum.Enum):
    RED = 51
    def mixed(self):
        return self.value + 52

SCHEDULE, HOLDER, TABLE = Schedule(1.0), Holder(21), Table(a=Holder(22))
SILENT, PART = Silent(23), functools.partial(lambda x, y: x + y + 24, 25)
LAYERS, METHOD, RED = torch.nn.Sequential(Layer()), SCHEDULE.strength, Colour.RED

def twice(function):
    @functools.wraps(function)
    def wrapper(*arguments):
        return 61 * function(*arguments)
    return wrapper

@functools.cache
def cached(x):
    return x + 71

class Mine(Method):
    bound = Holder(26).same
    slow = property(functools.lru_cache(lambda self: 27), lambda self, value: 28)

    @torch.no_grad()
    def on_task_start(self, position):
        return SCHEDULE.strength(), HOLDER.k, TABLE.best(), LAYERS, SILENT, PART, FACTOR + 81

    @torch.inference_mode()
    @twice
    def on_task_end(self, position):
        return Colour.RED.mixed(), cached(position)

    @property
    def rate(self):
        return 91

    @rate.setter
    def rate(self, value):
        self.found = value + 92

FACTOR = 82
"""


@pytest.mark.parametrize(
    "number",
    [
        *(11, 21, 22, 23, 24, 25, 26, 27, 28, 31, 41, 42, 43, 44, 51, 52, 61, 71, 81, 82, 91, 92),
        "= Schedule(1.0",
    ],
)
def test_code_and_values_behind_objects_and_decorators_tell_results_apart(
    run_cell: Any, number: int | str
) -> None:
    assert OBJECTS.count(str(number)) == 1
    codes = OBJECTS, OBJECTS, OBJECTS.replace(str(number), f"{number}5")
    first, again, other = (source_hash(run_cell(code).Mine) for code in codes)
    assert first == again != other


@pytest.mark.parametrize("use", ["METHOD()", "RED"])
def test_a_method_or_a_member_that_has_a_name_of_its_own_counts(run_cell: Any, use: str) -> None:
    start = OBJECTS.partition("class Mine")[0] + CELL.replace("SCALE * x", f"{use} * x")
    hashes = {
        source_hash(run_cell(start.replace("* 11", new).replace("+ 52", new)).Mine)
        for new in ("* 11", "* 12", "* 12")
    }
    assert len(hashes) == 2


def test_defaults_are_told_apart_by_their_values(run_cell: Any) -> None:
    """The text is the same, what stands behind the name is not."""
    code = VALUES.replace("count=100", "count=COUNT").replace("power=20", "power=POWER")
    start = "COUNT, POWER = {}, {}\n"
    hashes = {
        source_hash(run_cell(start.format(*numbers) + code).Mine)
        for numbers in ((1, 1), (2, 1), (1, 2))
    }
    assert len(hashes) == 3


def test_defaults_in_the_text_leave_an_id_as_it_was(run_cell: Any) -> None:
    """The id is that of version 0.2, which took the text only."""
    code = CELL.replace("half(x)", "half(x, k=2, *, power=(1, None))")
    assert source_hash(run_cell(code).Mine) == "2aa8e7160a20"


def test_an_id_of_a_script_is_the_same_in_every_process(tmp_path: Path) -> None:
    """Sets of texts have another order in each; objects have other addresses."""
    file = tmp_path / "script.py"
    show = "from cwbench.spec.notebook_source import source_hash\nprint(source_hash(Mine))\n"
    file.write_text(f"{VALUES}\n{show}")
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    hashes = {
        subprocess.run(
            [sys.executable, str(file)],
            env=environment | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(hashes) == 1


def test_a_value_that_cannot_be_told_apart_is_refused(run_cell: Any) -> None:
    pandas = "__import__('pandas')"
    for value in (
        "object()",
        f"{pandas}.Series(range(5000))",
        f'{pandas}.DataFrame([["it\'s"] * 100])',  # cut off between quotes
        "np.array([None] * 5000)",
        "__import__('collections').OrderedDict(table=TABLE)",
        "[]; curve.append(curve)",
    ):
        with pytest.raises(UserError, match=r"Mine.curve cannot be part of an id"):
            source_hash(run_cell(VALUES.replace("curve = CURVE", f"curve = {value}")).Mine)


@pytest.mark.parametrize(
    ("value", "other"),
    [
        ("__import__('re').compile('a...b')", "__import__('re').compile('a...c')"),
        ("b'...'", "b'....'"),
        ("__import__('collections').OrderedDict(a='see ...')", "'see ...'"),
        ("tuple[int, ...]", "tuple[float, ...]"),
    ],
)
def test_dots_of_a_value_are_not_taken_for_what_is_left_out(
    run_cell: Any, value: str, other: str
) -> None:
    codes = [VALUES.replace("curve = CURVE", f"curve = {one}") for one in (value, value, other)]
    first, again, changed = (source_hash(run_cell(code).Mine) for code in codes)
    assert first == again != changed


def test_a_module_as_an_attribute_is_no_part_of_an_id(run_cell: Any) -> None:
    """Its text would name a folder of this machine."""
    code = CELL.replace("class Mine(Base):", "class Mine(Base):\n    lib = __import__('numpy')")
    assert source_hash(run_cell(code).Mine) == source_hash(run_cell(CELL).Mine)


def test_a_class_without_source_is_refused(run_cell: Any) -> None:
    message = "the source of .* is not available; define the method in a file or .* without %%time"
    with pytest.raises(UserError, match=message):
        source_hash(run_cell(CELL, known=False).Mine)


ENV_CELL = """
class Mine:
    goal = 3

    def __init__(self, size=1):
        self.size = size

    @staticmethod
    def reward():
        return 1.0
"""


@pytest.mark.parametrize(("old", "new"), [("goal = 3", "goal = 4"), ("1.0", "2.0"), ("=1", "=2")])
def test_the_source_of_a_notebooks_environment_tells_its_results_apart(
    run_cell: Any, old: str, new: str
) -> None:
    cells = ENV_CELL, "\n# moved\n" + ENV_CELL, ENV_CELL.replace(old, new)
    first, same, other = (Task("x", run_cell(cell).Mine).record()["source"] for cell in cells)
    assert first == same != other
    with pytest.raises(UserError, match=r"the source of .*:Mine is not available; define it in a"):
        Task("x", run_cell(ENV_CELL, known=False).Mine)
