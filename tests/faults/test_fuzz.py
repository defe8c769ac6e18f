"""Readers get mutated files: whatever is in them, only our own error comes out."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from faults import count, times

from cwbench import load_policy, sequences
from cwbench.launch.jobs import read_job, read_segments
from cwbench.spec.config import MethodConfig
from cwbench.spec.errors import UserError
from cwbench.spec.statistics import EVAL_COLUMNS
from cwbench.store import checkpoint, files, runs
from cwbench.store.results import SegmentFolder

TOML = """name = "mine"
suite = "gymnasium"
[[tasks]]
name = "a"
id = "Pendulum-v1"
score = {threshold = 1}
"""
SEGMENT = {"method": "l2", "env": {"suite": "pointmass"}, "tasks": ["a"], "seed": 0}
JOB = {
    "schema": 1,
    "methods": {"l2": "l2"},
    "protocol": "smoke",
    "command": "x",
    "segments": [SEGMENT],
}

STATUS = {"state": "done", "step": 3, "checksums": {"evals.csv": "crc32:0"}, "resources": {}}
LAYOUT: dict[str, Any] = {"shapes": {}, "layers": 1, "head_layers": 1, "activation": "relu"}
LAYOUT |= {"log_std": "clip", "log_std_range": [-20, 2]}
TEXTS = {
    "job": json.dumps(JOB),
    "toml": TOML,
    "record": json.dumps({"a": [1, {"b": 2.5}]}),
    "status": json.dumps(STATUS),
    "table": ",".join(EVAL_COLUMNS) + "\n25,0,push,2,1,-20.5\n50,0,push,2,2,3e2\n",
    "card": json.dumps({"layout": LAYOUT, "weights": "w.safetensors", "segment": SEGMENT}),
}


def write_sample(kind: str, file: Path) -> None:
    if kind == "tensors":
        checkpoint.save(file, {"w": torch.arange(6.0).view(2, 3)}, {"step": 3})
    elif kind == "array":
        files.write_array(file, np.arange(12.0).reshape(3, 4))
    else:
        file.write_text(TEXTS[kind])


def read_whole_job(file: Path) -> Any:
    return read_segments(read_job(file), lambda name: MethodConfig)


def read_table(file: Path) -> Any:
    return runs._table(file, runs.TABLE_COLUMNS["evals"], EVAL_COLUMNS, [])


READERS: dict[str, tuple[str, Callable[[Path], Any]]] = {
    "record": ("a.json", files.read_json),
    "job": ("a.json", read_whole_job),
    "status": ("status.json", lambda file: SegmentFolder(file.parent).status()),
    "table": ("evals.csv", read_table),
    "card": ("a.json", load_policy),
    "toml": ("a.toml", lambda file: sequences.expand(str(file))),
    "tensors": ("a.safetensors", checkpoint.load),
    "array": ("a.npy", lambda file: np.array(files.read_array(file))),
}


def mutated(content: bytes, rng: random.Random) -> bytes:
    """A few random edits: a byte changed, a piece removed, repeated or made up."""
    data = bytearray(content)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(data) + 1)
        end = min(len(data), at + rng.randint(1, 12))
        match rng.randrange(4):
            case 0 if at < len(data):
                data[at] = rng.randrange(256)
            case 1:
                del data[at:end]
            case 2:
                data[at:at] = data[at:end]
            case _:
                data[at:at] = rng.choice([b"{", b"]", b"null", b"-1e999", b"9" * 30, b"\0", b'""'])
    return bytes(data)


def fuzz(kind: str, tmp_path: Path, number: int) -> None:
    name, read = READERS[kind]
    rng, file = random.Random(kind), tmp_path / name
    write_sample(kind, file)
    good = file.read_bytes()
    for _ in range(number):
        file.write_bytes(mutated(good, rng))
        try:
            read(file)
        except UserError:
            pass
        except Exception as error:
            count(f"fuzzed: {kind}", survived=False)
            raise AssertionError((type(error), file.read_bytes())) from error
        count(f"fuzzed: {kind}")


@pytest.mark.parametrize("kind", READERS)
def test_mutated_files(kind: str, tmp_path: Path) -> None:
    fuzz(kind, tmp_path, 150)


@pytest.mark.slow
@pytest.mark.parametrize("kind", READERS)
def test_many_mutated_files(kind: str, tmp_path: Path) -> None:
    fuzz(kind, tmp_path, times(5_000))
