"""The command line. Each command is a module that loads when it is called.

So `cwbench --help` and `cwbench report` never import torch.
"""

import importlib
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from cwbench.spec.errors import UserError, unknown
from cwbench.spec.failure import of_the_disk
from cwbench.spec.version import __version__

# command -> (module, one line of help)
COMMANDS = {
    "run": ("cwbench.cli.run", "Train methods on sequences."),
    "pairwise": ("cwbench.cli.pairwise", "Train all ordered pairs of tasks and draw the matrices."),
    "train": ("cwbench.cli.train", "Train one fleet that a launcher wrote down."),
    "experiment": ("cwbench.cli.experiment", "Train the paper's experiments, or one of your own."),
    "tune": ("cwbench.cli.tune", "Choose a method's options by grid search."),
    "status": ("cwbench.cli.status", "Show what is done, running, waiting or failed."),
    "retry": ("cwbench.cli.retry", "Train failed segments again."),
    "clean": ("cwbench.cli.clean", "Remove snapshots and replay that are no longer needed."),
    "merge": ("cwbench.cli.merge", "Add the results of several folders to one."),
    "report": ("cwbench.cli.report", "Turn a results folder into tables, figures and a page."),
    "board": ("cwbench.cli.board", "Check contributed results and show them on one site."),
    "video": ("cwbench.cli.video", "Record videos of a segment's policies."),
    "track": ("cwbench.cli.sharing", "Send results to TensorBoard, wandb or trackio."),
    "export": ("cwbench.cli.sharing", "Write results as parquet, rliable, minari or weights."),
    "push": ("cwbench.cli.sharing", "Share a results folder on the Hugging Face Hub."),
    "pull": ("cwbench.cli.sharing", "Fetch a shared results folder."),
    "verify": ("cwbench.cli.report", "Check an exported table, or all files of a results folder."),
    "repair": ("cwbench.cli.repair", "Set damaged segments aside, to be trained again."),
    "methods": ("cwbench.cli.lists", "List the methods."),
    "sequences": ("cwbench.cli.lists", "List the named sequences."),
    "tasks": ("cwbench.cli.lists", "List the tasks."),
    "new-method": ("cwbench.cli.new_method", "Write a template for your own method."),
    "check": ("cwbench.cli.check", "Check a method: same numbers alone, in a fleet, resumed."),
    "bench": ("cwbench.cli.bench", "Measure speed, against other projects."),
    "completion": ("cwbench.cli.completion", "Print a shell completion script."),
    "doctor": ("cwbench.cli.doctor", "Show what is missing here, or damaged in a results folder."),
}


# What click raises for a group without a command; before version 8.2 it shows the help itself.
NO_ARGUMENTS = getattr(click.exceptions, "NoArgsIsHelpError", ())


class Commands(click.Group):
    """Answers an unknown command like other unknown names: with the closest one."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        known = self.list_commands(ctx)
        if args[0] not in known:
            raise unknown("command", args[0], known, f"`{ctx.command_path} --help` lists all")
        return super().resolve_command(ctx, args)


class Lazy(Commands):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        command: click.Command = getattr(
            importlib.import_module(COMMANDS[name][0]), name.replace("-", "_")
        )
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.command(cls=Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
def cli() -> None:
    """Compare continual-reinforcement-learning methods on Continual World."""


def _unknown_option(error: click.NoSuchOption) -> UserError:
    from cwbench.cli.options import flags_of, unknown_option

    assert error.ctx is not None
    params, command = error.ctx.command.get_params(error.ctx), error.ctx.command_path
    for param in params:
        if isinstance(param, click.Argument) and error.option_name == f"--{param.name}":
            what = f"{error.option_name} is not an option here"
            return UserError(what, f"write `{command} {param.human_readable_name}`")
    return unknown_option(error.option_name, flags_of(params), command)


PACKAGE = Path(__file__).parents[1]


@contextmanager
def _plain_warnings() -> Iterator[None]:
    """Inside the block, the package's own warnings are one line each, without file and code."""
    with warnings.catch_warnings():
        others = warnings.showwarning

        def show(message: Any, category: Any, filename: str, *where: Any, **more: Any) -> None:
            if Path(filename).is_relative_to(PACKAGE):
                click.echo(f"cwbench: warning: {' '.join(str(message).split())}", err=True)
            else:
                others(message, category, filename, *where, **more)

        warnings.showwarning = show
        yield


def main(args: list[str] | None = None) -> None:
    """Bad input ends with exit code 2 and one line, without click's usage block.

    No input at all gets the help.
    """
    try:
        with _plain_warnings():
            code = cli.main(args, prog_name="cwbench", standalone_mode=False)
        if code:
            sys.exit(code)
    except UserError as error:
        click.echo(f"cwbench: {error}", err=True)
        sys.exit(2)
    except click.NoSuchOption as error:
        click.echo(f"cwbench: {_unknown_option(error)}", err=True)
        sys.exit(2)
    except click.ClickException as error:
        if isinstance(error, NO_ARGUMENTS):
            error.show()
            sys.exit(error.exit_code)
        click.echo(f"cwbench: {' '.join(error.format_message().split())}", err=True)
        sys.exit(2 if isinstance(error, click.UsageError) else error.exit_code)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        click.echo(f"cwbench: {where}{error.strerror or error}", err=True)
        sys.exit(1 if of_the_disk(error) else 2)
    except click.Abort:
        sys.exit(130)
