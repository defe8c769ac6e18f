"""Copies the acting weights from the trainer to the workers."""

import contextlib
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cwbench.learner import host_memory
from cwbench.spec.actor_layout import Floats


class WeightPublisher:
    """Shared-memory copy of the acting weights.

    Copies from an accelerator are asynchronous; the version number is written last, so a worker
    that sees version n can read weights n. Weights may be replaced whenever no chunk is being
    collected with them.
    """

    def __init__(self, weights: Floats, version: NDArray[np.int64], device: torch.device) -> None:
        self._weights, self._arrived = torch.from_numpy(weights), torch.from_numpy(version)
        self._count = torch.zeros(1, dtype=torch.int64, device=device)
        self.version = 0  # of the weights last published
        self._event: Any = None
        if device.type == "cuda":
            self._event = torch.cuda.Event(blocking=True)  # type: ignore[no-untyped-call]
            # Copies to memory that is not page-locked are synchronous.
            self._unlocks = [host_memory.lock(x) for x in (self._weights, self._arrived)]

    def start(self, x: Tensor) -> None:
        """Begin to copy weights [R, P]."""
        self._weights.copy_(x, non_blocking=True)
        # The count is a kernel on the device between the two copies: it starts when the weights
        # have arrived, while two consecutive copies could overlap.
        self._count += 1
        self._arrived.copy_(self._count, non_blocking=True)
        self.version += 1
        if self._event is not None:
            self._event.record()

    def check(self) -> None:
        """Raises if the device has failed: then workers would wait forever."""
        if self._event is not None:
            self._event.query()

    def wait(self) -> None:
        if self._event is not None:
            self._event.synchronize()

    def close(self) -> None:
        if self._event is not None:
            with contextlib.suppress(RuntimeError):  # a device's failure has been reported already
                self.wait()
            for unlock in self._unlocks:
                if unlock is not None:
                    unlock()
