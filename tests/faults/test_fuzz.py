"""Readers get mutated files: whatever is in them, only our own error comes out."""

import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from faults import count, times

from cwbench import load_policy, sequences
from cwbench.launch.jobs import read_job, read_segments
from cwbench.spec.config import (
    MethodConfig,
    NetworkConfig,
    PointMassConfig,
    SACConfig,
    ScheduleConfig,
)
from cwbench.spec.errors import UserError
from cwbench.spec.segment import Segment, Setup
from cwbench.spec.statistics import EVAL_COLUMNS
from cwbench.store import checkpoint, files, runs
from cwbench.store.results import SegmentFolder

TOML = """name = "mine"
suite = "gymnasium"
[[task]]
name = "a"
id = "Pendulum-v1"
score = {threshold = 1}
"""
SETUP = Setup(
    "finetuning",
    MethodConfig(),
    sac=SACConfig(),
    network=NetworkConfig(),
    env=PointMassConfig(),
    schedule=ScheduleConfig(),
    source=None,
)
SEGMENT = Segment(SETUP, 0, ("reach-0-1", "reach-2-1000")).record()
JOB = {
    "schema": 1,
    "methods": {"finetuning": "finetuning"},
    "protocol": "smoke",
    "command": "x",
    "segments": [SEGMENT],
}

STATUS = {"state": "running", "step": 3, "checksums": {"evals.csv": "crc32:0"}, "resources": {}}
LAYOUT: dict[str, Any] = {"shapes": {"w": [2, 3]}, "layers": 1, "head_layers": 1}
LAYOUT |= {"activation": "relu", "log_std": "clip", "log_std_range": [-20, 2]}
CARD = {"task": "reach-0-1", "position": 0, "layout": LAYOUT, "weights": "w.safetensors"}
TEXTS = {
    "job": json.dumps(JOB),
    "toml": TOML,
    "record": json.dumps({"a": [1, {"b": 2.5}]}),
    "status": json.dumps(STATUS),
    "table": ",".join(EVAL_COLUMNS) + "\n25,0,push,2,1,-20.5\n50,0,push,2,2,3e2\n",
    "card": json.dumps(CARD | {"segment": SEGMENT}),
}


def write_sample(kind: str, file: Path) -> None:
    if kind == "tensors":
        checkpoint.save(file, {"w": torch.arange(6.0).view(2, 3)}, {"step": 3})
    elif kind == "array":
        files.write_array(file, np.arange(12.0).reshape(3, 4))
    else:
        file.write_text(TEXTS[kind])
        if kind == "card":
            checkpoint.save(file.with_name("w.safetensors"), {"w": torch.ones(2, 3)}, {})


def read_whole_job(file: Path) -> Any:
    return read_segments(read_job(file), lambda name: MethodConfig)


def read_table(file: Path) -> Any:
    return runs._table(file, runs.TABLE_COLUMNS["evals"], EVAL_COLUMNS, [])


READERS: dict[str, tuple[str, Callable[[Path], Any]]] = {
    "record": ("a.json", files.read_json),
    "job": ("a.json", read_whole_job),
    "status": ("status.json", lambda file: SegmentFolder(file.parent).intact_status()),
    "table": ("evals.csv", read_table),
    "card": ("a.json", load_policy),
    "toml": ("a.toml", lambda file: sequences.expand(str(file))),
    "tensors": ("a.safetensors", checkpoint.load),
    "array": ("a.npy", lambda file: np.array(files.read_array(file))),
}


VALUE = re.compile(rb'"[^"]*"|-?\d[\d.e+-]*|null|true|false')
WRONG = [b"null", b"[]", b"{}", b'"x"', b'""', b"-1", b"0", b"1.5", b"true", b"-1e999", b"9" * 30]


def mutated(content: bytes, rng: random.Random) -> bytes:
    """One value replaced, or a few random edits, after which JSON is hardly ever JSON."""
    values = list(VALUE.finditer(content))
    if values and rng.random() < 0.5:
        start, end = rng.choice(values).span()
        return content[:start] + rng.choice(WRONG) + content[end:]
    return edited(content, rng)


def edited(content: bytes, rng: random.Random) -> bytes:
    """A byte changed, a piece removed, repeated or made up."""
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
    read(file)  # the sample itself is whole
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
