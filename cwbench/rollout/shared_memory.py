"""Arrays that several processes of this machine share."""

import mmap
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class ArrayRef:
    """How another process finds a shared array."""

    path: str
    inode: int
    shape: tuple[int, ...]
    dtype: str

    def open(self, *, writable: bool = False) -> NDArray[Any]:
        with open(self.path, "r+b" if writable else "rb") as file:
            # The path may name another file by now, if the array has been closed.
            if os.fstat(file.fileno()).st_ino != self.inode:
                raise FileNotFoundError(f"{self.path}: the shared array is gone")
            access = mmap.ACCESS_WRITE if writable else mmap.ACCESS_READ
            memory = mmap.mmap(file.fileno(), 0, access=access)
        return np.frombuffer(memory, self.dtype).reshape(self.shape)


class SharedArray:
    """An array that other processes open through its `ref`.

    On Linux it has no name in any file system, so nothing is left behind however this process ends,
    and a small /dev/shm, as containers have, does not matter. Elsewhere it is a temporary file.
    """

    def __init__(self, shape: tuple[int, ...], dtype: type[np.generic] = np.float32) -> None:
        self._folder = ""
        if hasattr(os, "memfd_create"):
            self._file = os.memfd_create("cwbench")
            path = f"/proc/{os.getpid()}/fd/{self._file}"
        else:
            self._folder = tempfile.mkdtemp(prefix="cwbench-")
            path = str(Path(self._folder) / "array")
            self._file = os.open(path, os.O_RDWR | os.O_CREAT)
        size = np.dtype(dtype).itemsize * int(np.prod(shape))
        os.ftruncate(self._file, size)
        self.array: NDArray[Any] = np.frombuffer(mmap.mmap(self._file, size), dtype).reshape(shape)
        self.ref = ArrayRef(path, os.fstat(self._file).st_ino, shape, np.dtype(dtype).name)

    def close(self) -> None:
        """Nobody can open it any more; processes that have opened it keep it."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
            shutil.rmtree(self._folder, ignore_errors=True)
