"""Counts and lengths of time in sentences."""

from pathlib import Path

import numpy as np
import pytest

from cwbench.spec.text import as_command, counted, duration, file_name, listed, shown


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0 runs"), (1, "1 run"), (2, "2 runs"), (1000, "1,000 runs")]
)
def test_one_is_no_plural(number: int, text: str) -> None:
    assert counted(number, "run") == text


def test_verbs_agree() -> None:
    made = [counted(number, "segment is", "segments are") for number in (1, 2)]
    assert made == ["1 segment is", "2 segments are"]


def test_an_object_in_a_message_is_one_short_line() -> None:
    assert shown("a") == "'a'"
    assert "\n" not in shown(np.zeros((9, 9))) and len(shown("a" * 99)) == 60


def test_a_command_can_be_copied_into_a_shell() -> None:
    assert (
        as_command("repair", Path("my results"), "--all") == "`cwbench repair 'my results' --all`"
    )


def test_the_last_of_a_list_follows_an_and() -> None:
    made = [listed(words) for words in (["a"], ["a", "b"], ["a", "b", "c"])]
    assert made == ["a", "a and b", "a, b and c"]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.4, "0 s"), (45, "45 s"), (200, "3 min 20 s"), (4000, "1 h 6 min"), (183_600, "2 d 3 h")],
)
def test_a_length_of_time_has_two_units(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_file_names_have_no_separators() -> None:
    assert file_name("recall (lambda_=1.0)") == "recall-lambda_-1.0"
    assert file_name("../up") == "up"
