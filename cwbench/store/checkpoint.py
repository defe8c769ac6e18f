"""Files of tensors with a record: one file each, replaced in one step, never pickle."""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor


def save(path: Path, tensors: Mapping[str, Tensor], record: Mapping[str, Any]) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    content = {name: x.detach().cpu().contiguous() for name, x in tensors.items()}
    # Safetensors refuses tensors that share memory, as slices of a fleet may.
    seen: set[int] = set()
    for name, x in content.items():
        pointer = x.untyped_storage().data_ptr()
        if pointer in seen or x.untyped_storage().nbytes() != x.nbytes:
            content[name] = x.clone()
        seen.add(pointer)
    save_file(content, temporary, metadata={"record": json.dumps(record)})
    temporary.replace(path)


def load_record(path: Path) -> dict[str, Any]:
    with safe_open(path, "pt") as file:
        record: dict[str, Any] = json.loads((file.metadata() or {})["record"])
        return record


def load(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    with safe_open(path, "pt") as file:
        names = file.keys()  # the file itself cannot be iterated over
        return {name: file.get_tensor(name) for name in names}, load_record(path)


def one_run(tensors: Mapping[str, Tensor], run: int) -> dict[str, Tensor]:
    """One run's share of tensors [R, ...]; the run axis stays, with length 1."""
    return {name: x[run : run + 1] for name, x in tensors.items()}


def stack(states: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """The inverse: a fleet's tensors from those of its runs."""
    return {name: torch.cat([state[name] for state in states]) for name in states[0]}


def prefixed(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {f"{prefix}/{name}": x for name, x in tensors.items()}


def under(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors whose names begin with a prefix, without it."""
    start = f"{prefix}/"
    return {name[len(start) :]: x for name, x in tensors.items() if name.startswith(start)}
