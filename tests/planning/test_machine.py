"""What the environment says about this machine."""

import pytest

from cwbench.planning.machine import MOST_CORES, cores, most_threads
from cwbench.spec.errors import UserError


def test_a_launcher_names_the_cores_of_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CWBENCH_CORES", "3")
    assert cores() == 3


@pytest.mark.parametrize("text", ["abc", "0", "-3", "1e9", "1000000000", "2.5", "9" * 5000, "²"])
def test_what_is_no_number_of_cores_is_refused(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CWBENCH_CORES", text)
    with pytest.raises(UserError, match=r"CWBENCH_CORES=.*: not a number of cores; give 1 to"):
        cores()


@pytest.mark.parametrize(
    ("text", "most"), [("1", 1), (" 4 ", 4), ("4,2", 4), ("", MOST_CORES), ("all", MOST_CORES)]
)
def test_threads_are_limited_as_in_other_programs(
    text: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", text)
    assert most_threads() == most
