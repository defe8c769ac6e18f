"""`cwbench train`: one fleet from a job file, on whatever machine this is. Launchers start it."""

import json
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from cwbench.experiment.build import load_method
from cwbench.experiment.execution import DOING, Execution, pick_device
from cwbench.experiment.launching import HERE
from cwbench.experiment.provenance import about
from cwbench.experiment.session import Work, open_store
from cwbench.experiment.session import train as train_plan
from cwbench.launch.command import PAUSED, watch_tether


def doing_options(command: Any) -> Any:
    for option in reversed(DOING):
        command = option(command)
    return command


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@doing_options
@click.option("--tethered", is_flag=True, hidden=True, help="Pause when standard input ends.")
@click.pass_context
def train(ctx: click.Context, /, file: Path, tethered: bool, **given: Any) -> None:
    """Train the fleet of RESULTS/jobs/ID.json, or what is left of it.

    Exit status: 0 all done, 1 something failed, 75 paused by a signal and to be continued.
    """
    record = _read(file)
    if tethered:
        watch_tether()
    results = file.resolve().parent.parent
    fixed: dict[str, Any] = {
        "results": results,
        "live": False,
        "dry_run": False,
        "yes": True,
        "launching": HERE,
    }
    methods, segments = _segments(record)
    device = pick_device(given["device"])
    execution = Execution(**given, **fixed).settled(device, max(s.steps for s in segments))
    work = Work(open_store(results), methods, device, execution, Console())
    plan = work.plan((), segments)
    if not plan.missing:
        return
    work.set_up_torch(plan)
    own = about(record["protocol"], device, bool(execution.compiled))
    outcome = train_plan(work, plan, own | {"command": record["command"]})
    if outcome.interrupted:
        ctx.exit(PAUSED)
    if not outcome.good:
        ctx.exit(1)


def _read(file: Path) -> dict[str, Any]:
    from cwbench.launch.jobs import read_job

    try:
        return read_job(file)
    except OSError:
        raise click.UsageError(
            f"{file}: no such file; launchers write RESULTS/jobs/*.json"
        ) from None
    except (ValueError, json.JSONDecodeError) as error:
        raise click.UsageError(f"{file}: {error}") from None


def _segments(record: dict[str, Any]) -> tuple[dict[str, Any], list[Any]]:
    """The classes of a job's methods, as they are installed here, and its segments."""
    from cwbench.launch.jobs import read_segments

    entries = {name: load_method(where)[1] for name, where in record["methods"].items()}
    segments = read_segments(record, lambda name: entries[name].method.config_class)
    for segment in segments:
        if segment.setup.source != entries[segment.setup.method].source:
            raise click.UsageError(
                f"method {segment.setup.method}: its file has changed since the job was written"
            )
    return {name: entry.method for name, entry in entries.items()}, segments
