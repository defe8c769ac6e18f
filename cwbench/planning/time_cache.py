"""Times and memory of fleets as measured on this machine, kept in the user's cache folder."""

import contextlib
import json
import math
import os
import platform
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from cwbench.spec.segment import digest
from cwbench.spec.version import __version__

DAYS = 30.0  # after which a measurement is repeated


def machine(device: torch.device) -> dict[str, Any]:
    """What a time depends on besides the fleet."""
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.processor()
    host = {"host": platform.node(), "cores": os.cpu_count(), "device": name or device.type}
    settings = {"threads": torch.get_num_threads(), "tf32": torch.backends.cuda.matmul.allow_tf32}
    return host | settings | {"torch": torch.__version__, "cwbench": __version__}


def code_state() -> str:
    """Another text when the code has changed that memory depends on."""
    package = Path(__file__).parent.parent
    files = [file for name in ("learner", "methods") for file in (package / name).glob("*.py")]
    states = ((str(file.relative_to(package)), file.stat()) for file in sorted(files))
    return digest({name: [state.st_size, state.st_mtime_ns] for name, state in states})


class TimeCache:
    """Numbers by what they were measured of.

    A file that cannot be read or written is ignored, as is an entry without the right numbers.
    """

    def __init__(self, file: Path, device: torch.device) -> None:
        self.file, self.device = file, device
        self._used: set[str] = set()

    def _read(self) -> dict[str, Any]:
        with contextlib.suppress(OSError, ValueError, RecursionError):
            found = json.loads(self.file.read_text(encoding="utf-8"))
            if isinstance(found, dict):
                return found
        return {}

    def _key(self, what: Mapping[str, Any]) -> str:
        return digest({"machine": machine(self.device), "what": what})

    def get(self, what: Mapping[str, Any], count: int) -> list[float] | None:
        key = self._key(what)
        self._used.add(key)
        with contextlib.suppress(TypeError, KeyError, ValueError, OverflowError):
            entry = self._read()[key]
            numbers = [float(number) for number in entry["numbers"]]
            right = len(numbers) == count and all(0 <= number < math.inf for number in numbers)
            if right and time.time() - entry["measured"] <= 86400 * DAYS:
                return numbers
        return None

    def put(self, what: Mapping[str, Any], numbers: list[float]) -> None:
        entry = {"measured": time.time(), "numbers": numbers}
        self._write(self._read() | {self._key(what): entry})

    def forget_used(self) -> None:
        """Measure again next time what was asked for here: it has proved wrong."""
        self._write({key: entry for key, entry in self._read().items() if key not in self._used})

    def _write(self, content: Mapping[str, Any]) -> None:
        with contextlib.suppress(OSError):
            self.file.parent.mkdir(parents=True, exist_ok=True)
            temporary = self.file.with_name(f".{self.file.name}.{os.getpid()}")
            temporary.write_text(json.dumps(content))
            temporary.replace(self.file)
