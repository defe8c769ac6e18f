"""Page-locked host memory, which an accelerator can read and write directly."""

import contextlib
import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

ROOM = 0.8  # of a device's free memory that one table may take


def lock(x: Tensor) -> Callable[[], Any] | None:
    """Lock a CPU tensor's pages, so that copies from and to a device are asynchronous.

    Returns a function that unlocks them, which otherwise happens when the tensor is freed; None
    where locking is refused, as under a small `ulimit -l`.
    """
    runtime, size = torch.cuda.cudart(), x.numel() * x.element_size()  # type: ignore[no-untyped-call]
    if int(runtime.cudaHostRegister(x.data_ptr(), size, 0)) != 0:
        _take_error()
        return None
    unlock = weakref.finalize(x, runtime.cudaHostUnregister, x.data_ptr())
    unlock.atexit = False  # the driver may be gone by then
    return unlock


def _take_error() -> None:
    """CUDA keeps a refusal as the thread's last error; the next kernel would fail with it."""
    with contextlib.suppress(RuntimeError):
        torch.ones(1, device="cuda")  # a kernel, with which torch raises the error and clears it


class _Mapped:
    """Gives page-locked host memory the CUDA array interface, so torch sees device memory."""

    def __init__(self, x: Tensor) -> None:
        self.host = x
        self.__cuda_array_interface__ = {
            "shape": tuple(x.shape),
            "typestr": "<f4",
            "data": (x.data_ptr(), False),
            "version": 3,
        }


def zeros(*shape: int, device: torch.device) -> Tensor:
    """float32 zeros on the device, or in host memory mapped there if the device lacks room.

    Kernels read and write mapped memory over the bus, row by row as they need it: slower than the
    device's own, but nothing has to be sent ahead, and a captured update reads it like any other.
    """
    size = 4 * torch.Size(shape).numel()
    if device.type != "cuda" or size <= ROOM * torch.cuda.mem_get_info(device)[0]:
        return torch.zeros(*shape, device=device)
    host = torch.zeros(*shape)
    if lock(host) is None:
        raise MemoryError(
            f"{size >> 20} MiB fit neither into device memory nor into page-locked host memory: "
            "use a smaller --fleet-size or --buffer-size"
        )
    return torch.as_tensor(_Mapped(host), device=device)
