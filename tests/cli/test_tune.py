"""`cwbench tune`: what it refuses after parsing, and that a plan writes nothing."""

from pathlib import Path

from click.testing import CliRunner

from cwbench.cli import cli
from cwbench.spec.errors import UserError

SWEEP = ("tune", "ewc", "--on", "point3", "--option", "coef=1,10", "--protocol", "demo")


def test_a_launcher_that_does_not_wait_is_refused(tmp_path: Path) -> None:
    command = [*SWEEP, "--launcher", "print", "--results", str(tmp_path / "new")]
    made = CliRunner().invoke(cli, command)
    assert isinstance(made.exception, UserError)
    assert "tune has to wait for the results" in str(made.exception)
    assert not (tmp_path / "new").exists()


def test_a_plan_writes_nothing(tmp_path: Path) -> None:
    command = [*SWEEP, "--seeds", "0-1", "--dry-run", "--results", str(tmp_path / "new")]
    made = CliRunner().invoke(cli, command)
    assert made.exit_code == 0 and "4 runs = 12 segments" in made.output
    assert not (tmp_path / "new").exists()
