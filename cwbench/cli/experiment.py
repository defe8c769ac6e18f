"""`cwbench experiment`: the paper's tables and figures by name, and experiments of one's own."""

from collections import Counter
from typing import Any

import click
from rich.console import Console

from cwbench.cli.lists import show
from cwbench.cli.report import report_results
from cwbench.experiment.definition import Experiment, names, path_of, read
from cwbench.experiment.execution import Execution, execution_options
from cwbench.experiment.session import execute, say


@click.command()
@click.argument("wanted", nargs=-1, required=True, metavar="NAME...")
@click.option("--seeds", help="Seeds in place of the experiment's: 3, 0-4 or 0,2,5-7.")
@click.option("--protocol", help="Protocol in place of the experiment's: paper, compact or smoke.")
@execution_options
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
    execution = Execution.take(given)
    if wanted[0] == "list" and len(wanted) == 1:
        list_experiments()
        return
    if wanted[0] == "show" and len(wanted) == 2:
        click.echo(path_of(wanted[1]).read_text(encoding="utf-8"), nl=False)
        return
    chosen = [read(name).changed(protocol, seeds) for name in dict.fromkeys(wanted)]
    if not train(chosen, execution):
        ctx.exit(1)
    if execution.launching.waits and not execution.dry_run:
        report_results(ctx, execution.results)


def train(chosen: list[Experiment], execution: Execution) -> bool:
    """All their runs in one plan, so that what they share is trained once."""
    if len({one.protocol for one in chosen}) > 1:
        found = ", ".join(f"{one.name} has {one.protocol}" for one in chosen)
        raise click.UsageError(f"different protocols ({found}); give one with --protocol")
    parts: dict[str, list[Any]] = {}
    kinds: dict[str, Any] = {}
    for one in chosen:
        runs, methods = one.runs()
        parts[one.name] = parts.get(one.name, []) + runs
        kinds |= methods
        if len(chosen) > 1 and (execution.dry_run or not execution.quiet):
            say(Console(), f"{one.name}: {len(runs)} runs")
    together = [run for runs in parts.values() for run in runs]
    return execute(together, kinds, execution, name=", ".join(parts), parts=parts)


def list_experiments() -> None:
    show([_row(read(name)) for name in names()], "experiment", "runs", "methods", "sequences",
         "seeds", "what for")  # fmt: skip


def _row(one: Experiment) -> tuple[str, ...]:
    settings = Counter(member.method for member in one.members)
    methods = [f"{name} x {n}" if n > 1 else name for name, n in settings.items()]
    places = one.written if len(one.written) < 20 else f"{len(one.sequences)} sequences"
    seeds = one.seeds
    whole = len(seeds) > 1 and list(seeds) == list(range(seeds[0], seeds[-1] + 1))
    numbers = f"{seeds[0]}-{seeds[-1]}" if whole else ",".join(map(str, seeds))
    return one.name, str(len(one)), ", ".join(methods), places, numbers, one.about
