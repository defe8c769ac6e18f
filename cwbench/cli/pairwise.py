"""`cwbench pairwise`: all ordered pairs of tasks, the paper's matrices."""

from itertools import product
from typing import Any

import click

from cwbench import sequences
from cwbench.cli.completers import complete_sequence
from cwbench.cli.experiment import train
from cwbench.cli.options import (
    GroupedCommand,
    click_options,
    flags_of,
    methods_option,
    seeds_and_protocol,
)
from cwbench.cli.training_options import TrainingOptions, training_options
from cwbench.experiment.build import parse_numbers, parse_seeds
from cwbench.experiment.definition import Experiment, Member
from cwbench.spec.config import option_groups
from cwbench.spec.errors import UserError, located
from cwbench.spec.protocol import parse_protocol


def parse_tasks(text: str | None, count: int) -> list[int]:
    """`0-9` or `2,5,8` -> numbers of tasks; all of them without a text."""
    if text is None:
        return list(range(count))
    with located("--tasks", "tasks are counted from 0 in the order of --seq"):
        return parse_numbers(text, "task id", count - 1)


class PairsCommand(GroupedCommand):
    """Points to `cwbench run` if one of its options is given."""

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        try:
            return super().make_context(*args, **extra)
        except click.NoSuchOption as error:
            groups = option_groups().values()
            shared = flags_of([one for group in groups for one in click_options(group, group="")])
            if error.option_name not in shared:
                raise
            what = f"{error.option_name} is an option of `cwbench run`, not of `cwbench pairwise`"
            raise UserError(what, "`cwbench run --seq 'pair-*-*'` trains all 100 pairs") from None


@training_options
@click.command(cls=PairsCommand)
@methods_option(
    default=("perfect-memory", "recall"),
    show_default=True,
    help="A method, or several joined by commas. May be given several times.",
)
@click.option(
    "--seq", "of", default="cw10", show_default=True, shell_complete=complete_sequence,
    help="Pairs of its tasks.",
)  # fmt: skip
@click.option("--tasks", help="Tasks by index in the sequence: 0-9 or 2,5,8.  [default: all]")
@seeds_and_protocol
@click.pass_context
def pairwise(
    ctx: click.Context,
    /,
    names: tuple[str, ...],
    of: str,
    tasks: str | None,
    seeds: str,
    protocol: str,
    **given: Any,
) -> None:
    """Train all ordered pairs of tasks, the diagonal included, and draw the matrices.

    Pairs with the same first task share it: ten tasks are 110 segments per method and seed.
    `cwbench run --seq 'pair-*-*'` trains all 100 pairs and has more options.
    """
    training = TrainingOptions.take(given)
    base = sequences.get(of)
    ids, numbers = parse_tasks(tasks, len(base.distinct)), parse_seeds(seeds)
    pairs = Experiment(
        name=f"pairs of {base.name}: {', '.join(names)}",
        description="",
        members=tuple(Member(name) for name in names),
        sequences=tuple(sequences.pair(*both, base) for both in product(ids, ids)),
        seeds=tuple(numbers),
        protocol=parse_protocol(protocol),
    )
    if not train([pairs], training):
        ctx.exit(1)
    if training.finishes:
        from cwbench.cli.report import show_table, write_report_into

        study = write_report_into(training.results, quiet=training.quiet)  # with the matrices
        if study and not training.quiet:
            show_table(study, "pairs")
