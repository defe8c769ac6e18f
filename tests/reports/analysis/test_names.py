"""Names as readers see them."""

import pytest

from cwbench.reports.analysis import names


@pytest.mark.parametrize(
    ("sequence", "family"),
    [
        ("cw3-4", "cw3"),
        ("cw10", "cw10"),
        ("cw100", "other"),
        ("pair-5-0", "pairs"),
        ("pair-cw3-1-0-2", "pairs"),
        ("single-push", "single"),
        ("orders-cw10-1", "other"),
    ],
)
def test_families(sequence: str, family: str) -> None:
    assert names.family(sequence) == family


def test_pairs_name_the_sequence_of_their_tasks() -> None:
    assert names.pairs_of("pair-5-0") == ""
    assert names.pairs_of("pair-cw3-1-0-2") == "cw3-1"


def test_titles_of_methods_are_registered_or_made_from_the_name() -> None:
    assert names.method_title("perfect_memory") == names.method_title("perfect-memory")
    assert names.method_title("my_method") == "My method"
    assert names.label_title("recall", "recall coef=1") == "RECALL coef=1"
    assert names.label_title("recall", "mine") == "mine"


def test_unregistered_methods_come_last() -> None:
    assert sorted(["aaa", "recall", "finetuning"], key=names.method_order) == [
        "finetuning",
        "recall",
        "aaa",
    ]


def test_numbers_are_sorted_by_value() -> None:
    assert sorted(["cw3-10", "cw3-2", "cw10"], key=names.natural) == ["cw3-2", "cw3-10", "cw10"]
    assert sorted(["m2²", "m10", "m2"], key=names.natural) == ["m2", "m2²", "m10"]  # no number
