"""Short fixed-seed runs of every method, pinned: evaluations and a hash of the final weights.

`CWBENCH_PIN=1 pytest tests/test_pinned_runs.py -k NAME` records a new method's values. Existing
values change only with a decision that results change.
"""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

from cwbench import sequences
from cwbench.experiment import build
from cwbench.methods import METHODS
from cwbench.store import checkpoint
from cwbench.store.results import Store

PINS = Path(__file__).parent / "data" / "pinned_runs.json"


def check(kind: str, name: str, value: Any) -> None:
    pins = json.loads(PINS.read_text()) if PINS.exists() else {}
    if os.environ.get("CWBENCH_PIN"):
        pins.setdefault(kind, {})[name] = value
        PINS.parent.mkdir(exist_ok=True)
        PINS.write_text(json.dumps(pins, indent=1, sort_keys=True) + "\n")
    assert pins[kind][name] == value


def digest(store: Store, segments: Any) -> str:
    made = hashlib.sha256()
    for one in segments:
        tensors, _ = checkpoint.load(store.folder(one).end)
        for name in sorted(tensors):
            made.update(name.encode())
            made.update(tensors[name].contiguous().numpy().tobytes())
    return made.hexdigest()


@pytest.mark.parametrize("name", METHODS)
def test_a_short_run_gives_the_pinned_numbers(name: str, toy_run: Any, tmp_path: Path) -> None:
    store, plan, _ = toy_run(tmp_path, name)
    rows = [
        line
        for one in plan.segments
        for line in (store.folder(one).path / "evals.csv").read_text().splitlines()[1:]
    ]
    check("runs", name, {"evaluations": rows, "weights": digest(store, plan.segments)})


@pytest.mark.parametrize("name", METHODS)
def test_segment_ids_are_the_pinned_ones(name: str) -> None:
    """A changed id would train a finished segment again."""
    ids = {}
    for protocol in ("paper", "compact"):
        base, entry = build.load_method(name)
        setup = build.make_setup(base, entry, protocol, {})
        sequence = sequences.get("cw3-1")
        [run] = build.make_runs(entry, name, setup, protocol, sequence, [0])
        ids[protocol] = [one.id for one in run.segments]
    check("ids", name, ids)
