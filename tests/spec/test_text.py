"""Counts in sentences."""

import pytest

from cwbench.spec.text import counted


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0 runs"), (1, "1 run"), (2, "2 runs"), (1000, "1,000 runs")]
)
def test_one_is_no_plural(number: int, text: str) -> None:
    assert counted(number, "run") == text


def test_verbs_agree() -> None:
    made = [counted(number, "segment is", "segments are") for number in (1, 2)]
    assert made == ["1 segment is", "2 segments are"]
