"""What the environment says about this machine."""

import pytest

from cwbench.planning.machine import cores
from cwbench.spec.errors import UserError


def test_a_launcher_names_the_cores_of_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CWBENCH_CORES", "3")
    assert cores() == 3


@pytest.mark.parametrize("text", ["abc", "0", "-3", "1e9", "1000000000", "2.5", "9" * 5000, "²"])
def test_what_is_no_number_of_cores_is_refused(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CWBENCH_CORES", text)
    with pytest.raises(UserError, match=r"CWBENCH_CORES=.*: not a number of cores; give 1 to"):
        cores()
