"""`cwbench pairwise`: all ordered pairs of tasks, the paper's matrices."""

from itertools import product
from typing import Any

import click

from cwbench import sequences
from cwbench.cli.execute import Execution, execute, execution_options
from cwbench.cli.names import load_method, make_runs, make_setup, parse_protocol, parse_seeds


def parse_tasks(text: str) -> list[int]:
    """`0-9` or `2,5,8` -> ids of the ten tasks."""
    ids = parse_seeds(text)
    if max(ids) >= len(sequences.CW_TASKS):
        last = len(sequences.CW_TASKS) - 1
        raise click.BadParameter(f"--tasks {text}: ids run from 0 to {last} (`cwbench tasks`)")
    return ids


@click.command()
@click.option(
    "--method", "names", multiple=True, default=("perfect-memory", "recall"), show_default=True,
    help="A method; may be given several times.",
)  # fmt: skip
@click.option("--tasks", default="0-9", show_default=True, help="Task ids: 0-9 or 2,5,8.")
@click.option("--seeds", default="0", show_default=True, help="Seeds: 3, 0-4 or 0,2,5-7.")
@click.option("--protocol", default="paper", show_default=True, help="paper, compact or smoke.")
@execution_options
@click.pass_context
def pairwise(
    ctx: click.Context,
    /,
    names: tuple[str, ...],
    tasks: str,
    seeds: str,
    protocol: str,
    **given: Any,
) -> None:
    """Train all ordered pairs of tasks, the diagonal included, and draw the matrices.

    Pairs with the same first task share it: ten tasks are 110 segments per method and seed.
    """
    execution = Execution.take(given)
    ids, numbers = parse_tasks(tasks), parse_seeds(seeds)
    parse_protocol(protocol)
    runs, kinds = [], {}
    for name in dict.fromkeys(names):
        method, entry = load_method(name)
        setup = make_setup(method, entry, protocol, {})
        kinds[method] = entry.method
        for first, second in product(ids, repeat=2):
            pair = sequences.pair(first, second)
            runs += make_runs(entry, name, setup, protocol, pair, numbers)
    title = f"pairs of tasks {tasks}: {', '.join(dict.fromkeys(names))}"
    if not execute(runs, kinds, execution, name=title):
        ctx.exit(1)
    if execution.launching.waits and not execution.dry_run:
        write_matrices(ctx, execution)


def write_matrices(ctx: click.Context, execution: Execution) -> None:
    """The whole report, since the matrices and their counts are part of it."""
    from cwbench.cli.report import report

    out = str(execution.results / "report")
    ctx.invoke(
        report, paths=(str(execution.results), out), results=None, window=None, name=None,
        format=None, interval=None, compare=None,
    )  # fmt: skip
