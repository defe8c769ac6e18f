"""What `cwbench bench` says adds up."""

import json
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner

from cwbench.cli import cli
from cwbench.planning.estimate import seconds_per_call


def test_shares_of_a_fleet_add_up(tmp_path: Path) -> None:
    picture = tmp_path / "time.svg"
    command = ["bench", "fleet", "--runs", "1", "--steps", "700", "--device", "cpu", "--json"]
    done = CliRunner().invoke(cli, [*command, "--workers", "1", "--timeline", str(picture)])
    assert done.exit_code == 0, done.output
    seen = json.loads(done.output)
    # The clock starts at the first stop from step 600 on, which is 601.
    assert seen["steps_per_s"] * seen["seconds"] == pytest.approx(700 - 601)
    # A single process on a CPU never does both; what is left is counting and writing.
    assert min(seen["learning"], seen["waiting"]) > 0 and seen["learning"] + seen["waiting"] <= 1
    assert 0 < seen["collecting"] + seen["evaluating"] <= 1
    assert picture.stat().st_size > 1000


def test_a_device_that_works_later_is_timed_without_its_warm_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On a clock of its own: asking takes no time, and every call is a second of work."""
    asked, now = [0], [0]

    def work_off() -> None:
        now[0] += asked[0]
        asked[0] = 0

    def ask() -> None:
        asked[0] += 1

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "synchronize", work_off)
    monkeypatch.setattr("cwbench.planning.estimate.time.perf_counter", lambda: now[0])
    assert seconds_per_call(ask, 0) == 1
