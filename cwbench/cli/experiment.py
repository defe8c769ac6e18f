"""`cwbench experiment`: the paper's tables and figures by name, and your own experiments."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import click

from cwbench.cli.completers import complete_experiment, complete_protocol
from cwbench.cli.console import show
from cwbench.cli.options import GroupedCommand
from cwbench.cli.training_options import TrainingOptions, execute, training_options
from cwbench.experiment.definition import Experiment, names, path_of, read
from cwbench.spec.errors import UserError
from cwbench.spec.text import counted

if TYPE_CHECKING:
    from cwbench.experiment.build import Methods
    from cwbench.planning.plan import Run


@training_options
@click.command(cls=GroupedCommand)
@click.argument(
    "wanted", nargs=-1, required=True, metavar="NAME...", shell_complete=complete_experiment
)
@click.option("--seeds", help="Seeds in place of the experiment's: 3, 0-4 or 0,2,5-7.")
@click.option(
    "--protocol", shell_complete=complete_protocol,
    help="Protocol in place of the experiment's: paper, compact, ...",
)  # fmt: skip
@click.pass_context
def experiment(
    ctx: click.Context,
    /,
    wanted: tuple[str, ...],
    seeds: str | None,
    protocol: str | None,
    **given: Any,
) -> None:
    """Train the paper's experiments, or one of your own from a TOML file.

    Several at once train what they have in common once. `experiment list` shows those there are,
    `experiment show NAME` the file of one, to copy and change.
    """
    if wanted == ("list",):
        list_experiments(as_json=given["as_json"])
        return
    training = TrainingOptions.take(given)
    if wanted[0] == "show" and len(wanted) == 2:
        click.echo(path_of(wanted[1]).read_text(encoding="utf-8"), nl=False)
        return
    if wanted[0] in ("list", "show"):
        raise UserError(
            f"experiment {' '.join(wanted)}: one command at a time",
            "write `experiment list` or `experiment show NAME`",
        )
    chosen = [read(name).changed(protocol, seeds) for name in dict.fromkeys(wanted)]
    if not train(chosen, training):
        ctx.exit(1)
    if training.finishes:
        from cwbench.cli.report import write_report_into

        write_report_into(training.results, quiet=training.quiet)


def train(chosen: list[Experiment], training: TrainingOptions) -> bool:
    """All their runs in one plan, so that what they share is trained once."""
    if len({one.protocol for one in chosen}) > 1:
        found = ", ".join(f"{one.name} has {one.protocol}" for one in chosen)
        raise UserError(f"different protocols ({found})", "give one with --protocol")
    parts: dict[str, list[Run]] = {}
    methods: Methods = {}
    for one in chosen:
        runs, own = one.runs()
        parts[one.name] = parts.get(one.name, []) + runs
        methods = {**methods, **own}
        if len(chosen) > 1:
            training.terminal.say(f"{one.name}: {counted(len(runs), 'run')}")
    return execute(parts, methods, training)


def list_experiments(*, as_json: bool = False) -> None:
    show([_row(read(name)) for name in names()], "experiment", "runs", "methods", "sequences",
         "seeds", "what for", as_json=as_json)  # fmt: skip


def _row(one: Experiment) -> tuple[str | int, ...]:
    settings = Counter(str(member.method) for member in one.members)
    methods = [f"{name} x {n}" if n > 1 else name for name, n in settings.items()]
    written = one.written if len(one.written) < 20 else f"{len(one.sequences)} sequences"
    seeds = one.seeds
    whole = len(seeds) > 1 and list(seeds) == list(range(seeds[0], seeds[-1] + 1))
    numbers = f"{seeds[0]}-{seeds[-1]}" if whole else ",".join(map(str, seeds))
    return one.name, len(one), ", ".join(methods), written, numbers, one.description
