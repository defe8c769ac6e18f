"""Typos are answered in one line, before anything heavy is imported."""

import subprocess
import sys
from pathlib import Path

import click
from click.testing import CliRunner

from cwbench.cli import COMMANDS, cli
from cwbench.spec.errors import UserError

ROOT = Path(__file__).parent.parent.parent


TYPOS = [
    ["run", "--method", "finetunning", "--seq", "cw3-1"],
    ["run", "--method", "l2", "--seq", "cw3-11"],
    ["run", "--method", "l2", "--seq=push,hamer"],
    ["run", "--method", "l2", "--seq", "cw3-1", "--seeds", "x"],
    ["run", "--method", "l2", "--seq", "cw3-1", "--protocol", "papr"],
    ["run", "--method", "l2", "--seq", "cw3-1", "--lr", "nan"],
    ["run", "--method", "l2", "--seq", "cw3-1", "--workers=0"],
    ["run", "--method", "l2", "--seq", "cw3-1", "--widt", "64"],
    ["run", "--method", "l2", "--seq", "cw3-1", "--lambda", "3"],
    ["run", "--method", "l2", "--method", "pm", "--seq", "cw3-1", "--coef", "3"],
    ["run", "--method", "l2,pn", "--seq", "cw3-1"],
    ["run", "--method", "l2", "--seq", "cw3-1", "--slurm-partition", "long"],
    ["experiment", "cw4"],
    ["experiment", "cw3", "--slurm-mem", "4G"],
    ["pairwise", "--tasks", "99"],
]


CODE = f"""
import sys
from cwbench.cli import main
for args in {TYPOS!r}:
    try:
        main(args)
    except SystemExit as error:
        print(error.code, "torch" in sys.modules)
"""


def test_typos_are_answered_before_torch_is_imported() -> None:
    made = subprocess.run(
        [sys.executable, "-c", CODE], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert made.stdout.splitlines() == ["2 False"] * len(TYPOS), made.stderr
    assert len(made.stderr.splitlines()) == len(TYPOS)


def test_an_option_of_other_methods_names_them() -> None:
    answer = CliRunner().invoke(cli, ["run", "--method", "pm", "--seq", "cw3-1", "--lambda=3"])
    assert isinstance(answer.exception, UserError)
    assert str(answer.exception).startswith("pm has no option --lambda, which is one of recall;")


def test_every_command_is_where_the_table_says() -> None:
    context = click.Context(cli)
    for name in COMMANDS:
        command = cli.get_command(context, name)
        assert command is not None and command.name == name and command.help
