"""Errors as they are stored and shown."""

import errno
import importlib
from pathlib import Path
from typing import Any

import pytest
import torch

import cwbench
from cwbench.experiment.build import load_method
from cwbench.spec.errors import UserError
from cwbench.spec.failure import (
    blamed_on,
    brief,
    describe,
    in_called_code,
    last_line,
    where_it_failed,
)

SOURCE = """
from cwbench.learner import Method

def helper(value):
    return 1 / value

class Breaks(Method):
    def on_task_start(self, position):
        int("x") if position else helper(position)
"""


@pytest.fixture
def breaks(tmp_path: Path) -> type:
    file = tmp_path / "breaks.py"
    file.write_text(SOURCE)
    return load_method(f"{file}:Breaks")[1].method


def call(cls: type, position: int) -> None:
    cls.on_task_start(None, position)  # type: ignore[attr-defined]


def test_the_line_is_the_innermost_one_of_the_users_file(breaks: type) -> None:
    with pytest.raises(ZeroDivisionError) as error:
        call(breaks, 0)
    record = describe(error.value, [breaks])
    assert (record["type"], record["line"], record["function"]) == (
        "ZeroDivisionError",
        5,
        "helper",
    )
    assert record["message"] == "division by zero" and record["traceback"].startswith("Traceback")
    assert where_it_failed(record).endswith(
        "breaks.py line 5, in helper: ZeroDivisionError: division by zero"
    )


def test_an_error_of_a_users_class_becomes_one_line(breaks: type) -> None:
    words = r"breaks.py line 9, in on_task_start: ValueError: invalid"
    with pytest.raises(UserError, match=words), blamed_on([breaks]):
        call(breaks, 1)


def test_a_hook_with_other_arguments_is_the_users_mistake(breaks: type) -> None:
    words = r"Breaks.on_task_start\(\) takes 2 positional arguments"
    with pytest.raises(UserError, match=words), blamed_on([breaks]):
        breaks.on_task_start(None, 1, 2)  # type: ignore[attr-defined]


def test_an_error_of_ours_stays_what_it_is(breaks: type) -> None:
    with pytest.raises(ZeroDivisionError), blamed_on([breaks]):
        1 / 0  # noqa: B018
    record = describe(ValueError("a\nlast"), [breaks])
    assert where_it_failed(record) == "ValueError: last" and not record["theirs"]


def test_of_torchs_signatures_the_call_that_fits_none_is_shown() -> None:
    text: Any = "x"
    with pytest.raises(TypeError) as error:
        torch.where(torch.ones(1), text, 1)
    assert "\n" in str(error.value)
    assert describe(error.value)["message"] == (
        "where() received an invalid combination of arguments - got (Tensor, str, int)"
    )


def test_a_user_error_needs_no_line_of_code() -> None:
    with pytest.raises(UserError) as error:
        raise UserError("found 1", "write 2")
    assert where_it_failed(describe(error.value)) == "found 1; write 2"


def test_a_full_disk_says_how_to_go_on_even_without_a_file() -> None:
    full = OSError(errno.ENOSPC, "No space left on device")
    assert last_line(full).startswith("No space left on device; once it can be written")


def test_a_message_of_one_word_is_shown_with_its_type() -> None:
    error = describe(KeyError("weights"))
    assert brief({"message": error["message"], "error": error}) == "KeyError: 'weights'"
    error = describe(UserError("too small", "use more"))
    assert brief({"message": error["message"], "error": error}) == "too small; use more"
    assert brief({"message": "weights are not finite"}) == "weights are not finite"


CALLED = {
    "key": ("def make():\n    raise KeyError('w')\n", "line 2, in make: KeyError: 'w'"),
    "name": ("x = undefined\n", "line 1, in <module>: NameError: name 'undefined' is not defined"),
    "syntax": ("\nx = = 1\n", "line 2: SyntaxError: invalid syntax"),
    "text": ("compile('= 1', '<text>', 'eval')\n", "line 1, in <module>: SyntaxError: invalid"),
    "library": ("import json\njson.loads('{')\n", "line 2, in <module>: JSONDecodeError: Expect"),
    "package": ("import no_such_package\n", "line 1, in <module>: ModuleNotFoundError"),
    "two": (
        "def make():\n    try:\n        1 / 0\n"
        "    except ArithmeticError as error:\n        raise ValueError('later') from error\n",
        "line 5, in make: ValueError: later",
    ),
    "lines": ("raise ValueError('one\\ntwo')\n", "line 1, in <module>: ValueError: one two"),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLED)
def test_an_error_in_imported_code_names_its_own_line(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not those of Python's import, nor of this package or file."""
    text, words = CALLED[name]
    file = tmp_path / f"called_{name}.py"
    file.write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(Exception) as error:  # noqa: PT011
        importlib.import_module(file.stem).make()
    assert where_it_failed(in_called_code(error.value, __file__)).startswith(f"{file} {words}")


def test_an_error_that_a_caller_passes_on_is_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `gymnasium.make` does; its own words say less."""
    file = tmp_path / "called_first.py"
    file.write_text(CALLED["two"][0])
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(RuntimeError) as error:
        try:
            importlib.import_module(file.stem).make()
        except ValueError as first:
            raise RuntimeError(f"{first} was raised from the environment creator") from first
    found = where_it_failed(in_called_code(error.value, __file__))
    assert found == f"{file} line 5, in make: ValueError: later"


def test_a_file_beside_a_caller_is_the_users() -> None:
    """Where its name begins like that of the package's folder."""
    file = f"{Path(cwbench.__file__).parent}_envs.py"
    with pytest.raises(KeyError) as error:
        exec(compile("{}['robot']", file, "exec"))
    assert where_it_failed(in_called_code(error.value, __file__)) == (
        f"{file} line 1, in <module>: KeyError: 'robot'"
    )


def test_an_error_in_no_file_of_the_users_names_none() -> None:
    with pytest.raises(KeyError) as error:
        dict[str, int]()["x"]
    assert where_it_failed(in_called_code(error.value, __file__)) == "KeyError: 'x'"
