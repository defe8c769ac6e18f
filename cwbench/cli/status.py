"""`cwbench status`: what is done, running, waiting or failed in a results folder."""

import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from cwbench.cli.console import show, show_problems
from cwbench.cli.folders import PATH, existing
from cwbench.spec.errors import UserError
from cwbench.spec.failure import where_it_failed
from cwbench.spec.text import at_task_end


@click.command()
@click.argument("results", default="results", type=PATH)
@click.option("--all", "everything", is_flag=True, help="List every segment, also done ones.")
@click.option("--runs", "by_run", is_flag=True, help="List runs with their success instead.")
@click.option("--errors", is_flag=True, help="Also the tracebacks of failed segments.")
@click.option(
    "--json", "as_json", is_flag=True, help="Print JSON instead: all segments, or runs with --runs."
)
def status(results: Path, everything: bool, by_run: bool, errors: bool, as_json: bool) -> None:
    """Show the experiments of a results folder: what is done, running, waiting or failed.

    A segment is one task of one run. Steps and speed of a running one are at most half a minute
    old, or one second for each run in fleets above 30.
    """
    if by_run:
        for flag, given in (("--all", everything), ("--errors", errors)):
            if given:
                raise UserError(f"{flag} has no effect with --runs", "leave out one of them")
        show_runs(existing(results), as_json=as_json)
        return
    from cwbench.store.status import read_status

    experiments, problems = read_status(existing(results))
    if as_json:
        click.echo(json.dumps(_as_record(experiments, problems), indent=1))
        return
    _show_experiments(experiments)
    segments = {s.id: s for one in experiments for s in one.segments}.values()
    listed = [s for s in segments if everything or s.state not in ("done", "waiting")]
    if listed:
        click.echo()
        columns = ("segment", "state", "steps", "steps/s", "note")
        show([_segment_row(segment) for segment in listed], *columns)
    if errors:
        _show_errors(segments)
    show_problems(problems)


def _show_errors(segments: Iterable[Any]) -> None:
    """Each traceback once, under the names of the segments that it ended."""
    folders: dict[str, list[str]] = {}
    for segment in segments:
        if segment.error:
            folders.setdefault(segment.error["traceback"], []).append(segment.folder)
    for text, names in folders.items():
        click.echo("\n" + "\n".join(names))
        click.echo(text.rstrip())
    if not folders:
        click.echo("no tracebacks are recorded here")


def _as_record(experiments: Sequence[Any], problems: list[str]) -> dict[str, Any]:
    segments = {s.id: asdict(s) for one in experiments for s in one.segments}
    return {
        "experiments": [
            {key: getattr(one, key) for key in ("name", "command", "created", "runs")}
            | {"step": one.step, "steps": one.steps, "counts": one.counts}
            | {"segments": [segment.id for segment in one.segments]}
            for one in experiments
        ],
        "segments": list(segments.values()),
        "problems": problems,
    }


def _show_experiments(experiments: Sequence[Any]) -> None:
    if not experiments:
        click.echo("no experiment is recorded here")
        return
    states = [s for s in experiments[0].counts if any(one.counts[s] for one in experiments)]
    rows = []
    for one in experiments:
        protocols = ",".join(sorted({segment.protocol for segment in one.segments}))
        numbers = [str(one.counts[state] or "-") for state in states]
        share = f"{one.step / max(one.steps, 1):.0%} of {one.steps:,}"
        rows.append((one.name, protocols, str(one.runs), str(len(one.segments)), *numbers, share))
    show(rows, "experiment", "protocol", "runs", "segments", *states, "steps")


def _segment_row(segment: Any) -> tuple[str, ...]:
    name = segment.folder or f"{segment.method}-{segment.position + 1}-{segment.task}-{segment.id}"
    speed = f"{segment.steps_per_second:,.0f}" if segment.steps_per_second else "-"
    note = segment.message
    if segment.state == "running":
        moment = time.strftime("%Y-%m-%d %H:%M", time.localtime(segment.since))
        note = f"on {segment.owner}" + (f" since {moment}" if segment.since else "")
        note = f"{at_task_end(segment.retraining)}, {note}" if segment.retraining else note
    elif segment.error:
        note = where_it_failed(segment.error)
    elif segment.state == "stopped":
        note = segment.message.removeprefix("stopped; ") or "the same command continues it"
    elif segment.state == "waiting":
        note = f"for {segment.waits_for}" if segment.waits_for else "not started"
    steps = f"{segment.step:,}/{segment.steps:,}"
    return name, segment.state, steps, speed, note


def show_runs(results: Path, *, as_json: bool = False) -> None:
    """A row per run, with the success rate of its last evaluation."""
    from cwbench.store.marks import shown_names
    from cwbench.store.runs import load_runs

    found = load_runs(results, ["evals"])
    evals = found.evals.assign(solved=found.solved)
    last = evals[evals["step"] == evals.groupby("run")["step"].transform("max")].dropna(
        subset="solved"
    )
    counts = last.groupby("run")[["solved", "episodes"]].sum()
    rates = (counts["solved"] / counts["episodes"]).to_dict()
    order = ["sequence", "label", "protocol", "seed"]
    runs = found.runs.sort_values(order)
    if as_json:
        kept = ["run", *order, "method", "setup", "tasks", "segments", "done"]
        kept += ["step", "steps", "state"]
        rows = [
            {key: run[key] for key in kept} | {"success": rates.get(run["run"])}
            for run in runs.to_dict("records")
        ]
        click.echo(json.dumps({"runs": rows, "problems": found.problems}, indent=1))
        return
    names = shown_names(found)
    show(
        [
            (
                *(*names[run["run"]], str(run["protocol"]), str(run["seed"])),
                f"{run['done']}/{len(run['segments'])}",
                f"{run['step']:,}/{run['steps']:,}",
                str(run["state"]),
                f"{rates[run['run']]:.2f}" if run["run"] in rates else "-",
            )
            for run in runs.to_dict("records")
        ],
        *("sequence", "method", "protocol", "seed", "tasks", "steps", "state", "success"),
    )
    show_problems(found.problems)
