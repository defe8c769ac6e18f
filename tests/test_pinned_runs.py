"""Short fixed-seed runs of every method, pinned: evaluations and final weights.

`CWBENCH_PIN=1 pytest tests/test_pinned_runs.py -k NAME` records a new method's values. Existing
values change only with a decision that results change.

Weights are compared bit for bit where the processor and torch are those that recorded them. Other
vector units sum in another order, so elsewhere the weights' norms are compared, to tolerance.
"""

import csv
import hashlib
import json
import os
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from cwbench import sequences
from cwbench.experiment import build
from cwbench.methods import METHODS
from cwbench.spec.segment import Segment
from cwbench.store import checkpoint
from cwbench.store.results import Store

PINS = Path(__file__).parent / "data" / "pinned_runs.json"
COLUMNS = ("step", "eval_position", "eval_task", "episodes", "successes", "mean_return")


def here() -> str:
    """What decides the last bits: processor, the vector units torch uses, torch."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    models = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    units = torch.backends.cpu.get_cpu_capability()
    return ", ".join([platform.machine(), *models[:1], units, f"torch {torch.__version__}"])


def pinned(kind: str, name: str, value: Any) -> Any:
    """The recorded value; with CWBENCH_PIN it is recorded first."""
    pins = json.loads(PINS.read_text())
    if os.environ.get("CWBENCH_PIN"):
        pins[kind][name] = value
        PINS.write_text(json.dumps(pins, indent=1, sort_keys=True) + "\n")
    return pins[kind][name]


def ends(store: Store, segments: Sequence[Segment]) -> list[dict[str, torch.Tensor]]:
    return [checkpoint.load(store.folder(segment).end)[0] for segment in segments]


def digest(states: Sequence[dict[str, torch.Tensor]]) -> str:
    made = hashlib.sha256()
    for tensors in states:
        for name in sorted(tensors):
            made.update(name.encode())
            made.update(tensors[name].contiguous().numpy().tobytes())
    return made.hexdigest()


def norms(states: Sequence[dict[str, torch.Tensor]]) -> list[float]:
    return [sum(float(x.double().norm()) for x in tensors.values()) for tensors in states]


def evaluations(store: Store, segment: Segment) -> list[list[str]]:
    with (store.folder(segment).path / "evals.csv").open() as file:
        return [[row[name] for name in COLUMNS] for row in csv.DictReader(file)]


@pytest.mark.parametrize("name", METHODS)
def test_a_short_run_gives_the_pinned_numbers(name: str, toy_run: Any, tmp_path: Path) -> None:
    store, plan, _ = toy_run(tmp_path, name)
    states = ends(store, plan.segments)
    rows = [row for segment in plan.segments for row in evaluations(store, segment)]
    found = {"evaluations": rows, "norms": norms(states), "weights": digest(states), "on": here()}
    expected = pinned("runs", name, found)
    if expected["on"] == found["on"]:
        assert found == expected
    assert [row[:4] for row in rows] == [row[:4] for row in expected["evaluations"]]
    returns = [[float(row[-1]) for row in side] for side in (rows, expected["evaluations"])]
    assert returns[0] == pytest.approx(returns[1], rel=0.02, abs=0.02)
    assert found["norms"] == pytest.approx(expected["norms"], rel=1e-3)


@pytest.mark.parametrize("name", METHODS)
def test_segment_ids_are_the_pinned_ones(name: str) -> None:
    """A changed id would train a finished segment again."""
    ids = {}
    for protocol in ("paper", "compact"):
        base, entry = build.load_method(name)
        setup = build.make_setup(base, entry, protocol, {})
        sequence = sequences.get("cw3-1")
        run = build.make_run(entry, name, setup, protocol, sequence, 0)
        ids[protocol] = [one.id for one in run.segments]
    assert ids == pinned("ids", name, ids)
