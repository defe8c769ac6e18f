"""What is recorded about how a segment was trained."""

import pytest
import torch

from cwbench.experiment import provenance


def test_a_copy_of_the_source_can_be_told_its_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CWBENCH_COMMIT", "0123456789ab")
    cpu = torch.device("cpu")
    described = provenance.describe(
        "smoke", cpu, compiled=False, gradients="autograd", command="cwbench run"
    )
    assert described["versions"]["commit"] == "0123456789ab"
    assert described["command"] == "cwbench run" and described["protocol"] == "smoke"
    assert described["device"] == {"type": "cpu", "compiled": False, "gradients": "autograd"}
