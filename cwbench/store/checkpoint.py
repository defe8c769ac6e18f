"""Files of tensors with a record and a checksum: replaced in one step, never pickle."""

import errno
import json
import re
import stat
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from cwbench.store import files
from cwbench.store.files import Damaged


def save(path: Path, tensors: Mapping[str, Tensor], record: Mapping[str, Any]) -> None:
    """Replace a file by a new one, after the new one has been read back."""
    content = {name: x.detach().cpu().contiguous() for name, x in tensors.items()}
    # Safetensors refuses tensors that share memory, as slices of a fleet may.
    seen: set[int] = set()
    for name, x in content.items():
        pointer = x.untyped_storage().data_ptr()
        if pointer in seen or x.untyped_storage().nbytes() != x.nbytes:
            content[name] = x.clone()
        seen.add(pointer)
    # One entry: the order of several would differ from file to file.
    text = json.dumps({**record, "checksum": _sum(content, record)})
    with files.replacing(path) as temporary:
        # What new files get here, by umask or ACL: safetensors' own only their owner may read.
        temporary.open("xb").close()
        mode = stat.S_IMODE(temporary.stat().st_mode)
        try:
            save_file(content, temporary, metadata={"record": text})
        except SafetensorError as error:
            number = re.search(r"os error (\d+)", str(error))
            raise OSError(int(number[1]) if number else errno.EIO, str(error)) from error
        if stat.S_IMODE(temporary.stat().st_mode) != mode:
            temporary.chmod(mode)
        load(temporary)


def load_record(path: Path) -> dict[str, Any]:
    """The record alone, without a look at the tensors."""
    with _opened(path) as file:
        return _record(path, file)


def load(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors and record; Unusable if they are not what was saved."""
    with _opened(path) as file:
        record = _record(path, file)
        names = file.keys()  # the file itself cannot be iterated over
        tensors = {name: file.get_tensor(name) for name in names}
    if record.pop("checksum", None) not in (None, _sum(tensors, record)):
        raise Damaged(path, "its checksum differs from the recorded one")
    return tensors, record


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    if not files.is_file(path):
        raise Damaged(path, "missing")
    try:
        path.open("rb").close()  # safetensors' error would not say that the permission is lacking
    except OSError as error:
        raise files.unusable(path, error) from None
    try:
        with safe_open(path, "pt") as file:
            yield file
    except (SafetensorError, OSError, RuntimeError) as error:
        raise Damaged(path, f"not a file of tensors: {str(error).splitlines()[0]}") from None


def _record(path: Path, file: Any) -> dict[str, Any]:
    try:
        record = json.loads((file.metadata() or {}).get("record", ""))
    except (ValueError, RecursionError):
        record = None
    if not isinstance(record, dict):
        raise Damaged(path, "without a record")
    return record


def _sum(tensors: Mapping[str, Tensor], record: Mapping[str, Any]) -> str:
    """CRC-32 of a record and of tensors with names, types and shapes."""
    value = zlib.crc32(json.dumps(record).encode())
    for name, x in sorted(tensors.items()):
        value = zlib.crc32(f"{name} {x.dtype} {tuple(x.shape)}".encode(), value)
        value = zlib.crc32(np.ascontiguousarray(x.numpy()).data, value)
    return f"crc32:{value:08x}"


def one_run(tensors: Mapping[str, Tensor], run: int) -> dict[str, Tensor]:
    """One run's share of tensors [R, ...]; the run axis stays, with length 1."""
    return {name: x[run : run + 1] for name, x in tensors.items()}


def finite(tensors: Mapping[str, Tensor]) -> list[bool]:
    """Whether all numbers of each run are finite, of tensors [R, ...]."""
    runs = [x.unsqueeze(-1).flatten(1).isfinite().all(1).cpu() for x in tensors.values()]
    return [bool(good) for good in torch.stack(runs).all(0)]


def stack(states: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """The inverse of `one_run`: a fleet's tensors from those of its runs."""
    return {name: torch.cat([state[name] for state in states]) for name in states[0]}


def prefixed(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {f"{prefix}/{name}": x for name, x in tensors.items()}


def under(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors whose names begin with a prefix, without it."""
    start = f"{prefix}/"
    return {name[len(start) :]: x for name, x in tensors.items() if name.startswith(start)}
