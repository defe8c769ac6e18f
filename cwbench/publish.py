"""Weights on their way from the trainer to the workers."""

import contextlib
from typing import Any

import torch
from torch import Tensor

from cwbench import hostmemory
from cwbench.actor import Floats


class Published:
    """The acting weights where workers read them. From an accelerator they arrive by and by.

    They may be replaced whenever no chunk is being collected with them.
    """

    def __init__(self, shared: Floats, device: torch.device) -> None:
        self._shared = torch.from_numpy(shared)
        self._event: Any = None
        if device.type == "cuda":
            self._event = torch.cuda.Event(blocking=True)  # type: ignore[no-untyped-call]
            # Without it a copy arrives all the same, but makes this process wait.
            self._unlock = hostmemory.lock(self._shared)

    def start(self, x: Tensor) -> None:
        self._shared.copy_(x, non_blocking=True)
        if self._event is not None:
            self._event.record()

    def wait(self) -> None:
        if self._event is not None:
            self._event.synchronize()

    def close(self) -> None:
        if self._event is not None:
            with contextlib.suppress(RuntimeError):  # a broken device has been reported already
                self.wait()
            if self._unlock is not None:
                self._unlock()
