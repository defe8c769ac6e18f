"""What is written down about how a segment was trained: versions, machine, device, command."""

from __future__ import annotations

import os
import platform
import subprocess
import time
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cwbench.spec.version import __version__

if TYPE_CHECKING:
    import torch


def describe(
    protocol: str, device: torch.device, *, compiled: bool, gradients: str, command: str
) -> dict[str, Any]:
    """What a segment's record holds besides what decides its numbers."""
    from importlib.metadata import version

    packages = ("torch", "mujoco", "metaworld", "numpy")
    own = {"cwbench": __version__, "commit": commit(), "python": platform.python_version()}
    return {
        "protocol": protocol,
        "versions": own | {name: version(name) for name in packages},
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
    """The commit of the checkout this package runs from; empty for an installed package.

    CWBENCH_COMMIT names it for a copy of a checkout, which has no history or another one.
    """
    return os.environ.get("CWBENCH_COMMIT") or _git_commit()


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
