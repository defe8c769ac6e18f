"""Disks to fill and to cut from power: small file systems that a test mounts."""

import ctypes
import fcntl
import gc
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

SHUTDOWN = 0x8004587D  # FS_IOC_SHUTDOWN of ext4 and XFS
WITHOUT_FLUSHING = 2


@contextmanager
def mounted(device: str, folder: Path, kind: str, options: str) -> Iterator[Path]:
    """A mounted file system; skips the test where mounting is not permitted."""
    folder.mkdir(exist_ok=True)
    command = ["mount", "-t", kind, "-o", options, device, str(folder)]
    try:
        said = subprocess.run(command, capture_output=True, text=True)
    except OSError as error:
        pytest.skip(f"cannot mount: {error}")
    if said.returncode:
        pytest.skip(f"cannot mount: {said.stderr.strip()}")
    try:
        yield folder
    finally:
        unmount(folder)


def unmount(folder: Path) -> None:
    """Arrays that are mapped from files keep a file system busy until they are collected."""
    deadline = time.monotonic() + 60
    while subprocess.run(["umount", str(folder)], capture_output=True).returncode:
        assert time.monotonic() < deadline, f"{folder} stays busy"
        gc.collect()
        time.sleep(0.1)


def make_ext4(image: Path, megabytes: int = 32) -> None:
    """An image to be mounted with the option `loop`; skips where there is no mkfs.ext4."""
    with image.open("wb") as stream:
        stream.truncate(megabytes << 20)
    try:
        subprocess.run(["mkfs.ext4", "-q", "-F", str(image)], check=True, capture_output=True)
    except OSError as error:
        pytest.skip(f"no mkfs.ext4: {error}")


def cut_power(folder: Path) -> None:
    """What the file system has not written to its device by now is lost."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.ioctl(descriptor, SHUTDOWN, ctypes.c_uint32(WITHOUT_FLUSHING))
    finally:
        os.close(descriptor)
