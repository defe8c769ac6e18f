"""What is written down about how a segment was trained: versions, machine, device, command."""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cwbench.spec.version import __version__, built_commit

if TYPE_CHECKING:
    import torch


def describe(
    protocol: str, device: torch.device, *, compiled: bool, gradients: str, command: str
) -> dict[str, Any]:
    """What a segment's record holds besides what decides its numbers."""
    from importlib.metadata import version

    packages = ("torch", "mujoco", "metaworld", "gymnasium", "numpy")
    own = {"cwbench": __version__, "commit": commit(), "source": source_hash()}
    return {
        "protocol": protocol,
        "versions": own
        | {"python": platform.python_version()}
        | {name: version(name) for name in packages},
        "machine": {
            "host": platform.node(),
            "cpu": platform.machine(),
            "system": platform.system(),
        },
        "device": _device_record(device, compiled, gradients),
        "command": command,
        "created": time.time(),
    }


def commit() -> str:
    """The commit this package is of; `source:` and a hash of its files where none is known.

    A wheel has it in `spec/COMMIT`. CWBENCH_COMMIT names it for a copy of a checkout, which has no
    history or another one.
    """
    return (
        os.environ.get("CWBENCH_COMMIT")
        or _git_commit()
        or built_commit()
        or f"source:{source_hash()}"
    )


@cache
def source_hash() -> str:
    """A hash of the package's own code: equal for equal code, wherever it is installed."""
    package = Path(__file__).resolve().parents[1]
    files = {file.relative_to(package).as_posix(): file for file in _sources(package)}
    total = hashlib.sha256()
    for name in sorted(files):
        total.update(f"{name} {hashlib.sha256(files[name].read_bytes()).hexdigest()}\n".encode())
    return total.hexdigest()[:12]


def _sources(package: Path) -> Iterator[Path]:
    """Its Python files. In a checkout some folders are links: `rglob` follows only its start."""
    for entry in package.iterdir():
        if entry.is_dir():
            yield from entry.rglob("*.py")
        elif entry.suffix == ".py":
            yield entry


@cache
def _git_commit() -> str:
    root = Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return ""
    command = ["git", "-C", str(root), "rev-parse", "--short=12", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True).stdout.strip()
    except OSError:  # no git on this machine
        return ""


def _device_record(device: torch.device, compiled: bool, gradients: str) -> dict[str, Any]:
    """What changes the last digits of a result but not what it means."""
    import torch

    record: dict[str, Any] = {
        "type": device.type,
        "compiled": compiled,
        "gradients": gradients,
    }
    if device.type == "cuda":
        record["name"] = torch.cuda.get_device_name()
        record["tf32"] = torch.backends.cuda.matmul.allow_tf32
    return record
