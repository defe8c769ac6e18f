"""Options as the command line takes them."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from cwbench.cli import cli, main


def test_keyword_option_has_a_plain_flag() -> None:
    text = CliRunner().invoke(cli, ["run", "--method", "recall-pairs", "--help"]).output
    assert "--lambda " in text and "--lambda_" not in text and "--lambda- " not in text


def test_dry_run_accepts_both(tmp_path: Path) -> None:
    command = "run --method recall --seq pair-5-0 --protocol smoke --dry-run --lambda 0.5"
    arguments = [*command.split(), "--unshared", "actor", "--results", str(tmp_path)]
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == 0, result.output


def test_help_of_run_has_groups(capsys: pytest.CaptureFixture[str]) -> None:
    main(["run", "--method", "recall", "--help"])
    lines = capsys.readouterr().out.splitlines()
    groups = [line.rstrip(":") for line in lines if line.endswith(":") and line[0] != " "]
    assert groups == ["Options", "Execution", "Launcher", "Method", "SAC", "Networks",
                      "Environment", "Schedule"]  # fmt: skip
    own = lines[lines.index("Method:") : lines.index("SAC:")]
    assert any("--lambda" in line for line in own) and not any("--lr" in line for line in own)
    main(["run", "--help"])
    assert "`cwbench run --method NAME --help` also shows" in capsys.readouterr().out


def test_help_is_shown_next_to_a_mistyped_value(capsys: pytest.CaptureFixture[str]) -> None:
    """What it may be is read there."""
    main(["run", "--method", "recall", "--seq", "cw3-11", "--layers", "many", "--help"])
    assert "--layers INTEGER" in capsys.readouterr().out


def test_help_shows_what_an_option_may_be(capsys: pytest.CaptureFixture[str]) -> None:
    main(["run", "--method", "recall", "--help"])
    text = " ".join(capsys.readouterr().out.split())
    assert "Transitions per update. [default: 128] [1 to 1,000,000]" in text
    assert "Weight of distillation. [default: 10.0] [at least 0]" in text
    assert "entropy is the target. [default: 0.089] [above 0, at most 1,000]" in text


def test_help_shows_numbers_as_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    main(["run", "--method", "recall", "--help"])
    text = " ".join(capsys.readouterr().out.split())
    for flag, default in (("lag", "0"), ("actor-every", "1"), ("fleets-per-gpu", "1")):
        assert f"[default: {default}]" in text.partition(f"--{flag} ")[2].partition(" --")[0]
    assert (
        "--popart / --no-popart Normalise each task's targets by running statistics. "
        "[default: true]" in text
    )
