"""`cwbench tune`: choose a method's options by grid search."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import click

from cwbench import sequences
from cwbench.cli.completers import complete_method, complete_sequence
from cwbench.cli.console import show
from cwbench.cli.experiment import train
from cwbench.cli.options import GroupedCommand, Number, seeds_and_protocol
from cwbench.cli.training_options import TrainingOptions, command_line, training_options
from cwbench.experiment.build import parse_seeds
from cwbench.spec.options import flag_name
from cwbench.spec.protocol import parse_protocol

if TYPE_CHECKING:
    from cwbench.experiment.tuning import Tuning


@training_options
@click.command(cls=GroupedCommand)
@click.argument("method", shell_complete=complete_method)
@click.option(
    "--on", required=True, multiple=True, metavar="SEQUENCE", shell_complete=complete_sequence,
    help="A sequence to choose on, as --seq of `cwbench run`. May be given several times.",
)  # fmt: skip
@click.option(
    "--option", "swept", required=True, multiple=True, metavar="NAME=VALUE,...",
    help="Values of an option to try; several options are combined. Semicolons separate values "
    "that have commas: 'hidden=64,64;128,128'.",
)  # fmt: skip
@seeds_and_protocol
@click.option(
    "--first", type=Number(float, above=0, maximum=100), metavar="PERCENT",
    help="Use only this part of each sequence: its first tasks, their number rounded up.",
)  # fmt: skip
@click.pass_context
def tune(
    ctx: click.Context,
    /,
    method: str,
    on: tuple[str, ...],
    swept: tuple[str, ...],
    seeds: str,
    protocol: str,
    first: float | None,
    **given: Any,
) -> None:
    """Try options of a method; choose the setting with the highest mean anytime performance.

    The anytime performance of a run is the mean, over its evaluations, of the success over all
    tasks of the sequence, counted as the protocol does. All settings that differ in per-run options
    train in one fleet. The choice goes to a file in RESULTS/tuning that `cwbench run --tuned FILE`
    takes; reports mark numbers of the chosen setting, because that is no fair test on the sequences
    used for choosing.
    """
    from cwbench.experiment.tuning import check_waits, make_tuning, parse_sweep

    training = TrainingOptions.take(given)
    wanted = list(dict.fromkeys(one for text in on for one in sequences.expand(text)))
    numbers = parse_seeds(seeds)
    asked = parse_protocol(protocol)
    check_waits(training.launching)
    tuning = make_tuning(
        method,
        wanted,
        parse_sweep(swept, method),
        seeds=numbers,
        protocol=asked,
        first=first,
    )
    if not train([tuning.experiment], training):
        ctx.exit(1)
    if training.finishes:
        finish(tuning, training, method)


def finish(tuning: Tuning, training: TrainingOptions, method: str) -> None:
    """Choose, write the choice down and say what it rests on."""
    runs, _ = tuning.experiment.runs()
    tuned = tuning.finish(training.results, runs, command_line())
    rows = [
        (
            *(str(value) for value in setting.options.values()),
            f"{setting.score:.3f}",
            f"[{setting.low:.3f}, {setting.high:.3f}]" if setting.runs > 1 else "",
            str(setting.runs),
        )
        for setting in tuned.settings
    ]
    show(rows, *map(flag_name, tuning.swept), "mean anytime performance", "90 % interval", "runs")
    click.echo(tuned)
    own = ["--method", method] if ".py:" in method else []  # others are found by name
    use = shlex.join(["cwbench", "run", *own, "--tuned", str(tuned.file), "--seq", "SEQUENCE"])
    click.echo(f"written to {tuned.file}; use it with: {use}")
