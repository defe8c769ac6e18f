"""What is written down about how a segment was trained: versions, machine, device, command."""

from __future__ import annotations

import platform
import time
from typing import TYPE_CHECKING, Any

from cwbench.spec.commit import commit, source_hash
from cwbench.spec.version import __version__

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
