"""Page-locked memory where locking is refused; the rest needs a device (test_cuda.py)."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from cwbench.learner import host_memory


def test_a_refusal_to_lock_is_not_left_to_the_next_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in CUDA: the last error of a thread is raised by the next kernel, once."""
    errors: list[str] = []

    def refuse(*_: int) -> int:
        errors.append("operation not supported")
        return 801

    def kernel(*_: Any, device: str) -> None:
        if errors:
            raise RuntimeError(f"CUDA error: {errors.pop()}")

    runtime = SimpleNamespace(cudaHostRegister=refuse)
    monkeypatch.setattr(torch.cuda, "cudart", lambda: runtime)
    monkeypatch.setattr(torch, "ones", kernel)
    assert host_memory.lock(torch.zeros(3)) is None
    torch.ones(1, device="cuda")
