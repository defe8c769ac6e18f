"""What `cwbench bench fleet` says adds up."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from cwbench.bench import fleets
from cwbench.cli import cli
from cwbench.fleet.claiming import Outcome
from cwbench.spec.errors import UserError


def test_shares_of_a_fleet_add_up(tmp_path: Path) -> None:
    picture = tmp_path / "time.svg"
    command = ["bench", "fleet", "--runs", "1", "--steps", "700", "--device", "cpu", "--json"]
    done = CliRunner().invoke(cli, [*command, "--workers", "1", "--timeline", str(picture)])
    assert done.exit_code == 0, done.output
    (seen,) = json.loads(done.output)
    assert (seen["runs"], seen["groups"]) == (1, 1)
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


class Trained(Exception):
    pass


def train(bench: fleets.Bench) -> None:
    raise Trained


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--groups", "2", "--steps", "700"], "use 750 or more"),
        (["--method", "ewc", "--method", "recall", "--steps", "749"], "use 750 or more"),
        (["--runs", "8,1", "--groups", "2", "--steps", "749"], "use 750 or more"),
        (["--method", "reset-distill"], "needs runs of finetuning first"),
        (["--timeline", "missing/time.svg"], "missing: no such folder"),
        (["--timeline", "time"], "time is no SVG file"),
    ],
)
def test_what_cannot_be_measured_is_refused_before_training(
    options: list[str], problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fleets, "fleet_speed", train)
    done = CliRunner().invoke(cli, ["bench", "fleet", "--device", "cpu", *options])
    assert isinstance(done.exception, UserError) and problem in str(done.exception)


@pytest.mark.parametrize("options", [["--runs", "1"], ["--runs", "2", "--groups", "1"]])
def test_a_single_fleet_needs_two_chunks(
    options: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fleets, "fleet_speed", train)
    done = CliRunner().invoke(
        cli, ["bench", "fleet", "--device", "cpu", "--steps", "700", *options]
    )
    assert isinstance(done.exception, Trained)


def test_an_interrupted_bench_ends_as_interrupted() -> None:
    timeline: Any = None
    with pytest.raises(KeyboardInterrupt):
        fleets._require_measured(Outcome(interrupted=True), timeline)
