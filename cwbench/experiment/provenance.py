"""What is written down about how a segment came to be."""

import os
import platform
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from cwbench.spec.version import __version__


def about(protocol: str, device: Any, compiled: bool) -> dict[str, Any]:
    """What a segment's record says beside what decides its numbers."""
    from importlib.metadata import version

    packages = ("torch", "mujoco", "metaworld", "numpy")
    return {
        "protocol": protocol,
        "versions": {
            "cwbench": __version__,
            "commit": commit(),
            "python": platform.python_version(),
        }
        | {name: version(name) for name in packages},
        "machine": {
            "host": platform.node(),
            "cpu": platform.machine(),
            "system": platform.system(),
        },
        "device": _device_record(device, compiled),
        "command": shlex.join(["cwbench", *sys.argv[1:]]),
        "created": time.time(),
    }


def commit() -> str:
    """The commit of a checkout this package runs from; empty for an installed package.

    A copy of a checkout has no history, or another one: CWBENCH_COMMIT then says what it is of.
    """
    if known := os.environ.get("CWBENCH_COMMIT"):
        return known
    root = Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return ""
    command = ["git", "-C", str(root), "rev-parse", "--short=12", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True).stdout.strip()
    except OSError:  # no git on this machine
        return ""


def _device_record(device: Any, compiled: bool) -> dict[str, Any]:
    """What changes the last digits of a result but not what it means."""
    import torch

    record: dict[str, Any] = {"type": device.type, "compiled": compiled}
    if device.type == "cuda":
        record["name"] = torch.cuda.get_device_name()
        record["tf32"] = torch.backends.cuda.matmul.allow_tf32
    return record
