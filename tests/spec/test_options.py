"""Options: the first layer wins, records are strict, added options leave old records alone."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pytest
import torch

from cwbench.spec.errors import UserError
from cwbench.spec.options import (
    check_all,
    checked,
    flag_name,
    from_record,
    option,
    parse,
    plain,
    rehearsal_scale,
    rehearsed,
    resolve,
    shared_options,
    to_record,
)


@dataclass(frozen=True)
class Config:
    steps: int = option(10, "Steps.", minimum=1, maximum=10**9)
    coef: float = option(2.0, "Weight.", minimum=0, per_run=True)
    samples: int = option(100, "Samples.", rehearsal=1)
    limit: float | None = option(None, "Limit, if any.", added=True)


def test_the_first_layer_with_a_value_wins() -> None:
    made = resolve(Config, {"steps": None, "coef": 0.0}, {"steps": 5, "coef": 3.0}, {"samples": 7})
    assert made == Config(steps=5, coef=0.0, samples=7)


def test_records_are_inverse_and_strict() -> None:
    config = Config(steps=3, limit=0.5)
    assert from_record(Config, to_record(config)) == config
    record = to_record(config)
    with pytest.raises(UserError, match=r"unknown keys \['speed'\]"):
        from_record(Config, record | {"speed": 1})
    with pytest.raises(UserError, match=r"missing keys \['steps'\]"):
        from_record(Config, {name: record[name] for name in record if name != "steps"})


def test_an_added_option_with_its_default_is_not_recorded() -> None:
    assert "limit" not in to_record(Config())
    assert to_record(Config(limit=0.5))["limit"] == 0.5


def test_a_record_without_an_option_means_what_was_done_formerly() -> None:
    @dataclass(frozen=True)
    class Changed:
        way: str = option("new", "How.", formerly="old")

    assert to_record(Changed()) == {"way": "new"}
    assert to_record(Changed("old")) == {}
    assert from_record(Changed, {}) == Changed("old")


def test_estimates_use_the_value_for_rehearsals() -> None:
    assert rehearsed(Config(steps=3)) == Config(steps=3, samples=1)
    assert rehearsed(Config(), factor=20) == Config(samples=20)
    assert rehearsed(Config(), factor=1000) == Config()
    assert rehearsal_scale(Config(), 20) == 5
    assert rehearsal_scale(Remembering(), 1) == 8
    assert rehearsed(Remembering()).states == 1
    assert rehearsed(Remembering(), memory=True) == Remembering()


@dataclass(frozen=True)
class Remembering:
    states: int = option(8, "States.", rehearsal=1, takes_memory=True)


def test_an_option_in_which_runs_differ_cannot_be_read_for_all() -> None:
    shared = shared_options(Config(steps=3))
    assert shared.steps == 3
    with pytest.raises(AttributeError):
        _ = shared.coef


@pytest.mark.parametrize(("text", "value"), [("1e6", 1_000_000), ("250", 250)])
def test_whole_numbers_may_have_an_exponent(text: str, value: int) -> None:
    assert parse(int, text) == value


@pytest.mark.parametrize(
    "values",
    [{"steps": 0}, {"steps": 10**10}, {"steps": 1.5}, {"coef": -1.0}, {"coef": float("nan")}],
)
def test_values_are_held_to_type_and_range(values: dict[str, float]) -> None:
    with pytest.raises(UserError):
        check_all(values, Config)


@dataclass(frozen=True)
class Choices:
    number: Literal[1, 2] = option(1, "Which.")
    texts: tuple[str, ...] = option((), "Any.")


def test_equal_values_are_one_choice() -> None:
    for value in (2, 2.0, np.int64(2), np.float32(2), torch.tensor(2)):
        found = checked(Choices, "number", value)
        assert found == 2 and type(found) is int
    for wrong in (True, 3, "1", [1]):
        with pytest.raises(UserError, match="is not one of 1, 2"):
            checked(Choices, "number", wrong)


def test_a_text_is_a_list_of_one() -> None:
    for value in ("account=lab", ["account=lab"], iter(["account=lab"])):
        assert checked(Choices, "texts", value) == ("account=lab",)
    for wrong in (3, [3], b"a", {"a": "b"}):
        with pytest.raises(UserError, match="is not a list of texts"):
            checked(Choices, "texts", wrong)


@pytest.mark.parametrize("kind", [torch.float16, torch.float32, torch.float64])
def test_a_number_of_torch_is_the_one_that_was_written(kind: torch.dtype) -> None:
    """As one of numpy is, whatever its precision."""
    assert checked(Config, "coef", torch.tensor(0.1, dtype=kind)) == 0.1


def test_a_set_of_parts_has_one_order() -> None:
    names = [f"part-{number}" for number in range(9)]

    @dataclass(frozen=True)
    class Parts:
        which: str = option("none", "Some.", parts=names)

    assert plain(Parts, "which", {*names}) == plain(Parts, "which", names) == ",".join(names)


def test_keywords_of_python_have_plain_flags() -> None:
    assert flag_name("lambda_") == "lambda" and flag_name("steps_per_task") == "steps-per-task"
