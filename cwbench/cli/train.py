"""`cwbench train`: one fleet from a job file, on whatever machine this is. Launchers start it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cwbench.cli.folders import PATH
from cwbench.cli.options import GroupedCommand
from cwbench.cli.training_options import execution_options
from cwbench.experiment.build import load_method
from cwbench.experiment.execution import Execution
from cwbench.experiment.listener import Terminal
from cwbench.experiment.session import open_session
from cwbench.experiment.trust import check_trust, edited_task, named_code
from cwbench.launch.command import PAUSED, watch_tether
from cwbench.spec.errors import UserError, located
from cwbench.spec.options import take
from cwbench.spec.segment import Segment

if TYPE_CHECKING:
    from cwbench.experiment.build import Methods


@execution_options
@click.command(cls=GroupedCommand)
@click.argument("file", type=PATH)
@click.option("--trust", is_flag=True, help="Run code that the file names: methods, environments.")
@click.option("--tethered", is_flag=True, hidden=True, help="Pause when standard input ends.")
@click.pass_context
def train(
    ctx: click.Context, /, file: Path, trust: bool, tethered: bool, quiet: bool, **given: Any
) -> None:
    """Train the fleet of RESULTS/jobs/ID.json, or what is left of it.

    Exit status: 0 all done, 1 something failed, 75 paused by a signal and to be continued.
    """
    record = _read(file)
    if tethered:
        watch_tether()
    with located(str(file)):
        methods, segments = _segments(record, trust)
    session = open_session(
        file.resolve().parent.parent,
        methods,
        segments,
        execution=take(Execution, given),
        listener=Terminal(quiet=quiet),
        protocol=record["protocol"],
        command=record["command"],
    )
    plan = session.plan((), segments)
    if not plan.missing:
        return
    outcome = session.train(plan)
    if outcome.interrupted:
        ctx.exit(PAUSED)
    if not outcome.good:
        ctx.exit(1)


def _read(file: Path) -> dict[str, Any]:
    from cwbench.launch.jobs import read_job

    with located(str(file), "launchers write job files: RESULTS/jobs/*.json"):
        return read_job(file)


def _segments(record: dict[str, Any], trust: bool) -> tuple[Methods, list[Segment]]:
    """The classes of a job's methods, as they are installed here, and its segments."""
    from cwbench.launch.jobs import read_segments

    check_trust(_named_code(record), trust, partial(click.echo, err=True))
    entries = {name: load_method(where)[1] for name, where in record["methods"].items()}
    segments = read_segments(record, lambda name: entries[name].method.config_class)
    for segment, asked in zip(segments, record["segments"], strict=True):
        if task := edited_task(asked["env"], segment.setup.env):
            what = f"task {task['name']}: {task['callable']}"
            raise UserError(f"{what} has changed since the job was written")
        name = segment.setup.method
        if segment.setup.source != entries[name].source:
            raise UserError(f"method {name}: its file has changed since the job was written")
    return {name: entry.method for name, entry in entries.items()}, segments


def _named_code(record: dict[str, Any]) -> Iterator[str]:
    for name in record["methods"].values():
        yield from named_code(name, {})
    for segment in record["segments"]:
        yield from named_code("", segment["env"])
