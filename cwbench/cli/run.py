"""`cwbench run`: one method on sequences."""

from copy import copy
from dataclasses import asdict
from typing import Any

import click

from cwbench import sequences
from cwbench.cli.options import click_options
from cwbench.cli.training_options import Training, execute, training_options
from cwbench.experiment.build import (
    check_count,
    layers,
    load_method,
    make_label,
    make_runs,
    make_setup,
    parse_protocol,
    parse_seeds,
    parse_unshared,
    with_unshared,
)
from cwbench.spec import options
from cwbench.spec.config import GROUPS, PROTOCOLS


class MethodCommand(click.Command):
    """A command whose options depend on --method, so that none is valid only sometimes."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any
    ) -> click.Context:
        name, protocol = _peek(args, "--method"), _peek(args, "--protocol") or "paper"
        command = copy(self)  # the next call may name another method
        if name and protocol in PROTOCOLS:
            _, entry = load_method(name)
            shown = layers(entry, protocol, {})
            for group in (entry.method.config_class, *GROUPS.values()):
                resolved = asdict(options.resolve(group, *shown))
                command.params = [*command.params, *click_options(group, resolved)]
        return click.Command.make_context(command, info_name, args, parent, **extra)


def _peek(args: list[str], flag: str) -> str | None:
    for index, arg in enumerate(args):
        if arg == flag and index + 1 < len(args):
            return args[index + 1]
        if arg.startswith(f"{flag}="):
            return arg.partition("=")[2]
    return None


@training_options
@click.command(cls=MethodCommand)
@click.option("--method", "name", required=True, help="A method, or path/to/file.py:ClassName.")
@click.option(
    "--seq", "sequence", required=True, multiple=True,
    help="A sequence: name, 'cw3-*', tasks a,b,c or file.toml. May be given several times.",
)  # fmt: skip
@click.option("--seeds", default="0", show_default=True, help="Seeds: 3, 0-4 or 0,2,5-7.")
@click.option("--protocol", default="paper", show_default=True, help="paper, compact, demo, smoke.")
@click.option(
    "--unshared", metavar="NETWORKS", help="actor, critic or actor,critic: one network per task."
)
@click.pass_context
def run(
    ctx: click.Context,
    /,
    name: str,
    sequence: tuple[str, ...],
    seeds: str,
    protocol: str,
    unshared: str | None,
    **given: Any,
) -> None:
    """Train a method on a sequence. The same command again continues where it stopped."""
    training = Training.take(given)
    parse_protocol(protocol)
    method, entry = load_method(name)
    wanted = [one for text in sequence for one in sequences.expand(text)]
    wanted = list(dict.fromkeys(wanted))
    alone = parse_unshared(unshared)
    chosen = with_unshared(alone, entry, protocol, given)
    label = make_label(name, entry, protocol, given, alone)
    numbers = parse_seeds(seeds)
    check_count(len(wanted) * len(numbers))
    runs = []
    for one in wanted:
        setup = make_setup(method, entry, protocol, chosen, one)
        runs += make_runs(entry, label, setup, protocol, one, numbers)
    title = f"{label} on {', '.join(one.name for one in wanted)}"
    if not execute({title: runs}, {method: entry.method}, training):
        ctx.exit(1)
