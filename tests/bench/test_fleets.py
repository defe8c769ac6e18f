"""What `cwbench bench fleet` says adds up."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

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
