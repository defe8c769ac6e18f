"""Options as the command line takes them."""

from pathlib import Path

from click.testing import CliRunner

from cwbench.cli import cli


def test_keyword_option_has_a_plain_flag() -> None:
    text = CliRunner().invoke(cli, ["run", "--method", "recall-pairs", "--help"]).output
    assert "--lambda " in text and "--lambda_" not in text and "--lambda- " not in text


def test_dry_run_accepts_both(tmp_path: Path) -> None:
    command = "run --method recall --seq pair-5-0 --protocol smoke --dry-run --lambda 0.5"
    arguments = [*command.split(), "--unshared", "actor", "--results", str(tmp_path)]
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == 0, result.output
