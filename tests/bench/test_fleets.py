"""What `cwbench bench fleet` says adds up."""

import json
from pathlib import Path
from typing import Any, cast

import pytest
import torch
from click.testing import CliRunner

from cwbench.bench.fleets import Clock, Cycle, Timeline
from cwbench.cli import cli


def test_shares_of_a_fleet_add_up(tmp_path: Path) -> None:
    picture = tmp_path / "time.svg"
    command = ["bench", "fleet", "--runs", "1", "--steps", "700", "--device", "cpu", "--json"]
    done = CliRunner().invoke(cli, [*command, "--workers", "1", "--timeline", str(picture)])
    assert done.exit_code == 0, done.output
    (seen,) = json.loads(done.output)
    # The clock starts at the first stop from step 600 on, which is 601.
    assert seen["steps_per_s"] * seen["seconds"] == pytest.approx(700 - 601)
    # A single process on a CPU never does both; what is left is counting and writing.
    assert min(seen["learning"], seen["waiting"]) > 0 and seen["learning"] + seen["waiting"] <= 1
    assert 0 < seen["collecting"] + seen["evaluating"] <= 1
    parts = seen["us_per_step"]
    assert min(parts.values()) >= 0 and parts["collect"] > 0 and parts["updates"] > 0
    # The parts of a step follow each other. The last chunk has no successor, and others are whole.
    assert sum(parts.values()) <= 1e6 * seen["seconds"] / (700 - 651)
    assert picture.stat().st_size > 1000


def test_parts_of_a_step_are_weighted_by_steps() -> None:
    """A chunk of one step follows each evaluation, and is not a fiftieth of all steps."""
    timeline = Timeline(cast(Any, None), 0, 0, 1)
    timeline._clock = Clock(torch.device("cpu"))
    timeline.fleets, timeline.ended = [cast(Any, None)], 100.0
    timeline._cycles = [
        Cycle(0, 49, 0.0, 4.9, 5.0, updates=[5.0, 5.0]),
        Cycle(0, 1, 5.0, 5.1, 5.1, updates=[5.2, 10.2]),
        Cycle(0, 50, 10.2, 15.2, 15.2, updates=[15.2, 20.2]),
    ]
    parts = timeline.parts()
    assert parts["collect"] == pytest.approx(1e6 * 5.0 / 50)
    assert parts["updates"] == pytest.approx(1e6 * 5.0 / 50)
    assert sum(parts.values()) == pytest.approx(1e6 * 10.2 / 50)
