"""Reading the clock around work that a device may do later."""

import time
from collections.abc import Callable

import torch


def seconds_per_call(action: Callable[[], None], budget: float) -> float:
    """Seconds per call, after a warm-up call, for about as long as the budget says."""
    action()
    finish()
    start, calls = time.perf_counter(), 0
    while calls < 1 or time.perf_counter() - start < budget:
        action()
        calls += 1
    finish()
    return (time.perf_counter() - start) / calls


def finish() -> None:
    """Wait for what has been asked of the device."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()
