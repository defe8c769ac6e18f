"""Commands that look after a results folder: status, retry, clean."""

import json
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from cwbench.cli.lists import show
from cwbench.experiment.build import load_method
from cwbench.experiment.execution import Execution, execution_options
from cwbench.experiment.session import execute, open_store
from cwbench.spec.errors import located

FOLDER = click.Path(path_type=Path)


def existing(results: Path) -> Path:
    if not results.is_dir():
        raise click.UsageError(f"{results}: no such folder; `cwbench run` makes one")
    return results


# Status


@click.command()
@click.argument("results", default="results", type=FOLDER)
@click.option("--all", "everything", is_flag=True, help="List every segment, also done ones.")
@click.option("--runs", "by_run", is_flag=True, help="List runs with their success instead.")
@click.option("--json", "as_json", is_flag=True, help="Everything, for programs.")
def status(results: Path, everything: bool, by_run: bool, as_json: bool) -> None:
    """Show the experiments of a results folder: what is done, running, waiting or failed.

    A segment is one task of one run. Steps and speed of a running one are as of its last
    evaluation.
    """
    if by_run:
        show_runs(existing(results))
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
        columns = ("segment", "method", "state", "steps", "steps/s", "about")
        show([_segment_row(segment) for segment in listed], *columns)
    for problem in problems:
        click.echo(f"problem: {problem}")


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
    rows = []
    for one in experiments:
        protocols = ",".join(sorted({segment.protocol for segment in one.segments}))
        numbers = [str(number or "-") for number in one.counts.values()]
        share = f"{one.step / max(one.steps, 1):.0%} of {one.steps:,}"
        rows.append((one.name, protocols, str(one.runs), str(len(one.segments)), *numbers, share))
    states = list(experiments[0].counts)
    show(rows, "experiment", "protocol", "runs", "segments", *states, "steps")


def _segment_row(segment: Any) -> tuple[str, ...]:
    name = segment.folder or f"{segment.method}-{segment.position + 1}-{segment.task}-{segment.id}"
    speed = f"{segment.steps_per_second:,.0f}" if segment.steps_per_second else "-"
    about = segment.message
    if segment.state == "running":
        moment = time.strftime("%Y-%m-%d %H:%M", time.localtime(segment.since))
        about = f"on {segment.owner}" + (f" since {moment}" if segment.since else "")
    elif segment.state == "stopped":
        about = "the same command continues it"
    elif segment.state == "waiting":
        about = f"for {segment.waits_for}" if segment.waits_for else "not started"
    steps = f"{segment.step:,}/{segment.steps:,}"
    return name, segment.method, segment.state, steps, speed, about


def show_runs(results: Path) -> None:
    """A row per run, with the success rate of its last evaluation."""
    from cwbench.store.results import load_runs

    found = load_runs(results)
    rows = []
    for run in found.runs.to_dict("records"):
        success = found.evals[found.evals["run"] == run["run"]]
        last = success[success["step"] == success["step"].max()]
        rate = f"{last['successes'].sum() / last['episodes'].sum():.2f}" if len(last) else "-"
        rows.append(
            (
                *(str(run[key]) for key in ("sequence", "label", "protocol", "seed")),
                f"{run['done']}/{len(run['segments'])}",
                f"{run['step']:,}/{run['steps']:,}",
                str(run["state"]),
                rate,
            )
        )
    show(
        sorted(rows), "sequence", "method", "protocol", "seed", "tasks", "steps", "state", "success"
    )
    for problem in found.problems:
        click.echo(f"problem: {problem}")


# Retry


@click.command()
@click.argument("results", default="results", type=FOLDER)
@click.argument("wanted", nargs=-1, metavar="[SEGMENT]...")
@click.option("--diverged", is_flag=True, help="Also those whose weights became infinite.")
@click.option("--restart", is_flag=True, help="Begin them anew, not from their snapshots.")
@execution_options
@click.pass_context
def retry(
    ctx: click.Context,
    /,
    results: Path,
    wanted: tuple[str, ...],
    diverged: bool,
    restart: bool,
    **given: Any,
) -> None:
    """Train failed segments again, and whatever else their experiments still lack.

    With SEGMENT, a folder's name or an id as `cwbench status` shows them, only these and what waits
    for them. A diverged one always begins anew, and on the same device ends the same.
    """
    execution = Execution.take(given | {"results": existing(results)})
    store = open_store(results)
    experiments, segments = _records(results)
    chosen = _choose(results, {"failed", "diverged"} if diverged else {"failed"}, wanted)
    if not chosen:
        click.echo(f"nothing to retry in {results}")
        return
    asked = [one for one in experiments if any(_holds(run, chosen) for run in one["runs"])]
    runs, kinds = _rebuild(asked, segments, set(chosen) if wanted else None)
    if not execution.dry_run:
        for key, state in chosen.items():
            folder = store.root / "segments" / segments[key]["folder"]
            _reset(folder, restart or state == "diverged")
    good = []
    for protocol in dict.fromkeys(run.protocol for run in runs):  # a new segment records it
        part = [run for run in runs if run.protocol == protocol]
        # They are recorded already: a retry is no experiment of its own.
        good.append(execute(part, kinds, execution, name="retry", parts={}))
    if not all(good):
        ctx.exit(1)


retry.params = [param for param in retry.params if "--results" not in param.opts]  # an argument


def _records(root: Path) -> tuple[list[dict[str, Any]], dict[str, dict[str, Any]]]:
    from cwbench.store.results import read_experiments, read_segments

    problems: list[str] = []
    segments = {record["id"]: record for record in read_segments(root, problems)}
    return list(read_experiments(root, problems)), segments


def _choose(results: Path, states: set[str], wanted: Sequence[str]) -> dict[str, str]:
    """The ids to retry, with their states."""
    from cwbench.store.status import read_status

    every = {s.id: s for one in read_status(results)[0] for s in one.segments}
    if not wanted:
        return {key: s.state for key, s in every.items() if s.state in states}
    chosen = {}
    for text in wanted:
        found = [s for s in every.values() if text.rstrip("/").split("/")[-1] in (s.id, s.folder)]
        if not found:
            raise click.UsageError(f"no segment {text!r} in {results}; `cwbench status` lists them")
        if found[0].state not in states:
            hint = "; give --diverged" if found[0].state == "diverged" else ""
            raise click.UsageError(f"segment {text} is {found[0].state}, not failed{hint}")
        chosen[found[0].id] = found[0].state
    return chosen


def _holds(run: Mapping[str, Any], ids: Collection[str]) -> bool:
    return not set(run["segments"]).isdisjoint(ids)


def _rebuild(
    experiments: Sequence[Mapping[str, Any]],
    segments: Mapping[str, Mapping[str, Any]],
    only: set[str] | None,
) -> tuple[list[Any], dict[str, Any]]:
    """The runs of experiments, or those that hold certain segments, and their methods."""
    from cwbench.spec.segment import setup_digest

    setups = {setup_digest(record): record for record in segments.values()}
    runs, kinds = {}, {}
    for experiment in experiments:
        again = f"to train them: {experiment.get('command', 'see experiments/')}"
        own = [run for run in experiment["runs"] if only is None or _holds(run, only)]
        if absent := [run for run in own if run["setup"] not in setups]:
            click.echo(f"{len(absent)} runs of {experiment['name']} have not begun; {again}")
        for run in (run for run in own if run["setup"] in setups):
            with located(run["label"], again):
                made, kinds[run["method"]] = _rebuild_run(run, setups[run["setup"]])
            runs[run["sequence"], tuple(run["segments"])] = made
    return list(runs.values()), kinds


def _rebuild_run(run: Mapping[str, Any], record: Mapping[str, Any]) -> tuple[Any, Any]:
    """A recorded run, from any segment's record of its setup, and its method."""
    from cwbench.planning.plan import Run
    from cwbench.spec.segment import Setup, path

    _, entry = load_method(record["method"])
    kind, tasks = entry.method, tuple(run["tasks"])
    setup = Setup.from_record(record, kind.config_class)
    made = path(
        setup, run["seed"], tasks, needs_length=kind.needs_length, joint=kind.trains_jointly
    )
    if [s.id for s in made] != list(run["segments"]) or setup.source != entry.source:
        raise ValueError("its method has changed since")
    return Run(run["sequence"], tasks, run["label"], run["protocol"], tuple(made)), kind


def _reset(path: Path, restart: bool) -> None:
    from cwbench.fleet import snapshot
    from cwbench.store.results import SegmentFolder

    folder = SegmentFolder(path)
    if restart:
        snapshot.discard(folder.snapshot)
    folder.set_status("pending", **({"step": 0} if restart else {}))


# Clean


@click.command()
@click.argument("results", default="results", type=FOLDER)
@click.option("--dry-run", is_flag=True, help="List and stop.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def clean(results: Path, dry_run: bool, yes: bool) -> None:
    """Remove snapshots, replay memories and claims that no recorded run needs any more.

    Evaluations, weights at the end of a task and all records stay, so reports do not change and
    unfinished experiments continue. A longer sequence that begins like a finished one would have to
    train the beginning again, where its method replays stored data.
    """
    from cwbench.planning.estimate import size
    from cwbench.store.cleanup import leftovers

    open_store(existing(results))
    found, problems = leftovers(results)
    if problems:
        raise click.ClickException(
            f"{problems[0]}; nothing is removed while a record cannot be read"
        )
    if not found:
        click.echo(f"nothing to remove in {results}")
        return
    rows = [(str(item.path.relative_to(results)), item.kind, size(item.bytes)) for item in found]
    show(rows, "what", "why", "size")
    total = size(sum(item.bytes for item in found))
    if dry_run:
        click.echo(f"{total} in {len(found)} places; nothing is removed")
        return
    if not yes:
        click.confirm(f"remove {total} in {len(found)} places?", abort=True)
    for item in found:
        item.remove()
    click.echo(f"removed {total}")
