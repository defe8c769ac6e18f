"""The source of classes of notebooks and scripts: what changes numbers changes it."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from commands import environment

from cwbench.learner import MethodConfig
from cwbench.spec.errors import UserError
from cwbench.spec.notebook_source import source_hash

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
from enum import Enum
from cwbench.learner import Method, MethodConfig

class Colour(Enum):
    RED, GREEN, BLUE, WHITE = range(4)

TABLE = np.arange(5000)
CURVE = torch.full((3,), 0.5, dtype=torch.float64)
WEIGHT = torch.nn.Parameter(torch.full((2,), 3.5, dtype=torch.bfloat16))

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
    names = {"a", "b", "c", "d", "e", *Colour}
    curve = CURVE
    by_name = {"table": TABLE, "weight": WEIGHT, "when": Schedule()}

    def on_task_end(self, position, count=100):
        return None
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("scaled(2.0)", "scaled(2.5)"),  # in a closure
        ("arange(5000)", "arange(5000) + (np.arange(5000) == 2500)"),  # where numpy shows dots
        ("0.5, dtype", "0.5 + 1e-9, dtype"),  # which torch rounds
        ("3.5", "4.5"),
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


def test_classes_of_one_name_from_two_modules_are_told_apart(run_cell: Any) -> None:
    for number, name in enumerate(("first_helper", "second_helper")):
        module = run_cell(f"class Helper:\n    size = {number}\n")
        sys.modules[name], module.Helper.__module__ = module, name
    codes = [
        CELL.replace("class Base(Method)", f"from {name} import Helper\nclass Base(Helper, Method)")
        for name in ("first_helper", "second_helper")
    ]
    assert len({source_hash(run_cell(code).Mine) for code in codes}) == 2
    del sys.modules["first_helper"], sys.modules["second_helper"]


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
    """Version 0.2 took the text only; and what was trained with this id is found again."""
    code = CELL.replace("half(x)", "half(x, k=2, *, power=(1, None))")
    assert source_hash(run_cell(code).Mine) == "3c9c50648940"


def test_a_reworded_help_of_the_package_leaves_an_id_as_it_was(
    run_cell: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = source_hash(run_cell(CELL).Mine)
    reset = MethodConfig.__dataclass_fields__["reset"]
    monkeypatch.setattr(reset, "metadata", {**reset.metadata, "help": "Other words."})
    assert source_hash(run_cell(CELL).Mine) == before


def test_an_id_of_a_script_is_the_same_in_every_process(tmp_path: Path) -> None:
    """Sets of texts have another order in each; objects have other addresses."""
    file = tmp_path / "script.py"
    show = "from cwbench.spec.notebook_source import source_hash\nprint(source_hash(Mine))\n"
    file.write_text(f"{VALUES}\n{show}")
    hashes = {
        subprocess.run(
            [sys.executable, str(file)],
            env=environment() | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(hashes) == 1


@pytest.mark.parametrize(
    "value",
    [
        "object()",
        "Held(1)",
        "Held(1).same",
        "extended()",
        "iter([1])",
        "[]; curve.append(curve)",
        "scaled(object())",
        "__import__('collections').OrderedDict(a=1)",
        "__import__('pandas').Series(range(5000))",
        "__import__('fractions').Fraction(1, 2)",
        "functools.partial(Held(1).same)",
        "functools.singledispatch(lambda x: x)",
        "functools.wraps(len)(Held(1))",
        "contextlib.nullcontext()",
        "contextlib.ExitStack().close",
        "np.array([None] * 5000)",
        "np.ma.array([1, 2], mask=[0, 1])",
        "np.random.default_rng(0)",
        "torch.nn.Linear(2, 1)",
        "torch.eye(2).to_sparse()",
        "torch.eye(2, device='meta')",
        "torch.ops.aten.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.quint8)",
        "torch.autocast('cpu')(scaled(2.0))",
        "10**5000",  # which Python does not show
        "Raises()",
        "weakref.proxy(Held)",
        "unittest.mock.MagicMock()",
        *(f"Claims({kind})" for kind in ("Enum", "type", "type(scaled)", "type(torch)")),
    ],
)
def test_a_value_of_another_kind_is_refused(run_cell: Any, value: str) -> None:
    start = """
import contextlib, functools, unittest.mock, weakref
class Raises:
    def __getattribute__(self, name):
        raise RuntimeError(name)
    def __repr__(self):
        raise RuntimeError
class Claims:
    def __init__(self, kind):
        self.kind = kind
    @property
    def __class__(self):
        return self.kind
class Held:
    def __init__(self, k):
        self.k = k
    def same(self):
        return self.k
    def __repr__(self):
        return "what is held"
def extended():
    made = Schedule()
    object.__setattr__(made, "more", 1)
    return made
"""
    message = r"(curve|k|coef) cannot be part of an id: .*; create it in a function .* in a file"
    with pytest.raises(UserError, match=message):
        source_hash(run_cell(start + VALUES.replace("curve = CURVE", f"curve = {value}")).Mine)


def test_a_module_as_an_attribute_is_no_part_of_an_id(run_cell: Any) -> None:
    """Its text would name a folder of this machine."""
    code = CELL.replace("class Mine(Base):", "class Mine(Base):\n    lib = __import__('numpy')")
    assert source_hash(run_cell(code).Mine) == source_hash(run_cell(CELL).Mine)


def test_a_class_without_source_is_refused(run_cell: Any) -> None:
    message = "the source of .* is not available; define the method in a file or .* without %%time"
    with pytest.raises(UserError, match=message):
        source_hash(run_cell(CELL, known=False).Mine)
