"""Typos are answered in one line, before anything heavy is imported."""

import errno
import os
import subprocess
import sys
import warnings
from contextlib import suppress
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from cwbench import envs
from cwbench.cli import COMMANDS, cli, main
from cwbench.cli.bench import bench
from cwbench.spec.errors import UserError
from cwbench.spec.failure import DISK_ERRORS

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
    ["run", "--method", "l2", "--seq", "cw3-1", "--buffer-size", "10"],
    ["run", "--method", "l2", "--seq", "cw3-1", "--update-after", "1e8"],
    ["run", "--method", "l2", "--seq", "cw3-1", "--hidden", "256,"],
    ["run", "--method", "l2", "--seq", "cw3-1", "--results", "/proc/x"],
    ["experiment", "cw4"],
    ["experiment", "cw3", "--results", "/proc/x"],
    ["experiment", "cw3", "--slurm-mem", "4G"],
    ["pairwise", "--tasks", "99"],
]


CODE = f"""
import sys
import warnings
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


@pytest.mark.parametrize("group", [[], ["bench"]])
def test_without_arguments_the_help_is_shown(
    group: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with suppress(SystemExit):
        main(group)
    shown = capsys.readouterr()
    main([*group, "--help"])
    assert shown.out + shown.err == capsys.readouterr().out


def test_every_option_of_every_command_says_what_it_is() -> None:
    context = click.Context(cli)
    commands = [cli.get_command(context, name) for name in COMMANDS]
    commands += [*bench.commands.values()]
    silent = [
        f"{command.name} {param.opts[0]}"
        for command in commands
        if command is not None
        for param in command.params
        if isinstance(param, click.Option) and not param.help
    ]
    assert silent == []


def test_every_command_is_where_the_table_says() -> None:
    context = click.Context(cli)
    for name in COMMANDS:
        command = cli.get_command(context, name)
        assert command is not None and command.name == name and command.help


def test_an_interrupt_while_importing_ends_without_a_traceback(tmp_path: Path) -> None:
    """Instead of click comes a module that is interrupted, as by Ctrl-C."""
    (tmp_path / "click.py").write_text("raise KeyboardInterrupt\n")
    paths = os.pathsep.join([str(tmp_path), str(ROOT)])
    command = [sys.executable, "-m", "cwbench", "--help"]
    environment = os.environ | {"PYTHONPATH": paths}
    ended = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "")


@pytest.mark.parametrize("number", [*sorted(DISK_ERRORS), errno.EACCES])
def test_a_disk_that_cannot_be_written_is_no_bad_input(
    number: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A folder that belongs to someone else is."""

    def fail(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number), "status.json")

    monkeypatch.setattr(cli, "main", fail)
    with pytest.raises(SystemExit) as ended:
        main(["methods"])
    assert ended.value.code == (2 if number == errno.EACCES else 1)
    assert capsys.readouterr().err == f"cwbench: status.json: {os.strerror(number)}\n"


def test_a_warning_of_the_package_is_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python would show the file and the code that warns; it does so for other packages."""

    def warn(*args: object, **more: object) -> None:
        for file in (envs.__file__, "/elsewhere/package.py"):
            warnings.warn_explicit("slow\nenvironment", UserWarning, file, 7)

    monkeypatch.setattr(cli, "main", warn)
    before = warnings.showwarning
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = lambda message, category, filename, lineno, *more: print(filename)
        main([])
    assert capsys.readouterr() == (
        "/elsewhere/package.py\n",
        "cwbench: warning: slow environment\n",
    )
    assert warnings.showwarning is before
