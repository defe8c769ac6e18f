"""`cwbench retry`: train failed segments again."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cwbench.cli.console import show_problems
from cwbench.cli.folders import PATH, results_folder
from cwbench.cli.options import GroupedCommand, method_option
from cwbench.cli.training_options import (
    TrainingOptions,
    execute,
    plan_record,
    planned,
    retry_options,
)
from cwbench.experiment.build import load_method
from cwbench.experiment.results_folder import open_store
from cwbench.experiment.trust import check_trust, edited_task, named_code
from cwbench.spec.errors import UserError, located
from cwbench.spec.segment import setup_digest
from cwbench.spec.text import counted

if TYPE_CHECKING:
    from cwbench.experiment.build import Methods
    from cwbench.learner.method import Method
    from cwbench.methods import Entry
    from cwbench.planning.plan import Run
    from cwbench.store.results import SegmentFolder, Store


@retry_options
@click.command(cls=GroupedCommand)
@click.argument("results", default="results", type=PATH)
@click.argument("wanted", nargs=-1, metavar="[SEGMENT]...")
@click.option("--diverged", is_flag=True, help="Also those whose weights became infinite or NaN.")
@method_option
@click.option("--trust", is_flag=True, help="Run code of environments that records name.")
@click.option("--restart", is_flag=True, help="Start them from the beginning, not from snapshots.")
@click.pass_context
def retry(
    ctx: click.Context,
    /,
    results: Path,
    wanted: tuple[str, ...],
    diverged: bool,
    files: tuple[str, ...],
    trust: bool,
    restart: bool,
    **given: Any,
) -> None:
    """Train failed segments again, and whatever else their experiments still lack.

    With SEGMENT, a folder's name or an id as `cwbench status` shows them, only these and what
    depends on them. A diverged segment always starts from the beginning; on the same device it
    diverges again.
    """
    training = TrainingOptions.take(given | {"results": results_folder(results)})
    store = open_store(results)
    experiments, segments, problems = _records(results)
    show_problems(problems)
    chosen = _choose(store, {"failed", "diverged"} if diverged else {"failed"}, wanted)
    if not chosen:
        click.echo("[]" if training.as_json else f"nothing to retry in {results}")
        return
    asked = [
        one | {"runs": [run for run in one["runs"] if not wanted or _holds(run, chosen)]}
        for one in experiments
        if any(_holds(run, chosen) for run in one["runs"])
    ]
    setups = {setup_digest(record): record for record in segments.values()}
    check_trust(_named_code(asked, setups), trust, partial(click.echo, err=True))
    runs, methods = _rebuild(asked, setups, dict(map(load_method, files)))
    parts: dict[str, list[Run]] = {}
    for run in runs:
        parts.setdefault(run.protocol, []).append(run)  # a new segment records its protocol
    if training.as_json:
        plans = [plan_record(*planned(part, methods, training)) for part in parts.values()]
        click.echo(json.dumps(plans, indent=1))
        return
    good = []
    for part in parts.values():
        ids = {segment.id for run in part for segment in run.segments}
        folders = {
            store.named(segments[key]["folder"]): state
            for key, state in chosen.items()
            if key in ids
        }
        done = execute(
            {"retry": part},
            methods,
            training,
            record=False,  # already recorded: a retry is not an experiment
            also_record=partial(_reset, folders, restart),
            command=_commands(asked, ids),  # for another retry nothing has failed
        )
        good.append(done)
    if not all(good):
        ctx.exit(1)


def _commands(experiments: Sequence[Mapping[str, Any]], ids: Collection[str]) -> str:
    """Commands of the experiments with certain segments."""
    holding = [one for one in experiments if any(_holds(run, ids) for run in one["runs"])]
    return "; ".join(dict.fromkeys(one["command"] for one in holding if one.get("command")))


def _records(root: Path) -> tuple[list[dict[str, Any]], dict[str, dict[str, Any]], list[str]]:
    """Records of experiments and, by id, of segments; and what cannot be read."""
    from cwbench.store.results import read_experiments, read_segments

    problems: list[str] = []
    segments = {record["id"]: record for record in read_segments(root, problems)}
    return list(read_experiments(root, problems)), segments, problems


def _choose(store: Store, states: set[str], wanted: Sequence[str]) -> dict[str, str]:
    """The ids to retry, with their states."""
    from cwbench.store import claims
    from cwbench.store.status import read_status

    every = {s.id: s for one in read_status(store.root)[0] for s in one.segments}
    chosen = {}
    for segment in every.values() if not wanted else ():
        if segment.state in states and claims.owner(store.named(segment.folder)):
            click.echo(f"{segment.folder} belongs to a running process and is left out", err=True)
        elif segment.state in states:
            chosen[segment.id] = segment.state
    for text in wanted:
        found = [s for s in every.values() if text.rstrip("/").split("/")[-1] in (s.id, s.folder)]
        if not found:
            raise UserError(f"no segment {text!r} in {store.root}", "`cwbench status` lists them")
        if found[0].state not in states:
            hint = "give --diverged" if found[0].state == "diverged" else ""
            raise UserError(f"segment {text} is {found[0].state}, not failed", hint)
        if owner := claims.owner(store.named(found[0].folder)):
            raise UserError(f"segment {text} belongs to process {owner}", "retry it after its end")
        chosen[found[0].id] = found[0].state
    return chosen


def _holds(run: Mapping[str, Any], ids: Collection[str]) -> bool:
    return not set(run["segments"]).isdisjoint(ids)


def _rebuild(
    experiments: Sequence[Mapping[str, Any]],
    setups: Mapping[str, Mapping[str, Any]],
    own_methods: Mapping[str, Entry],
) -> tuple[list[Run], Methods]:
    """The runs of experiments, and their methods. `setups`: a segment's record for each setup."""
    runs: dict[tuple[str, tuple[str, ...]], Run] = {}
    methods = {}
    for experiment in experiments:
        again = f"to train them: {experiment.get('command', 'see experiments/')}"
        if absent := [run for run in experiment["runs"] if run["setup"] not in setups]:
            waiting = counted(len(absent), "run has", "runs have")
            click.echo(f"{experiment['name']}: {waiting} not begun; {again}", err=True)
        for run in (run for run in experiment["runs"] if run["setup"] in setups):
            with located(run["label"], again):
                made, methods[run["method"]] = _rebuild_run(run, setups[run["setup"]], own_methods)
            runs[run["sequence"], tuple(run["segments"])] = made
    return list(runs.values()), methods


def _named_code(
    experiments: Sequence[Mapping[str, Any]], setups: Mapping[str, Mapping[str, Any]]
) -> Iterator[str]:
    """Code of environments that the runs to be trained again name."""
    for run in (run for experiment in experiments for run in experiment["runs"]):
        if run["setup"] in setups:
            yield from named_code("", setups[run["setup"]]["env"])


def _rebuild_run(
    run: Mapping[str, Any], record: Mapping[str, Any], own_methods: Mapping[str, Entry]
) -> tuple[Run, type[Method[Any]]]:
    """A recorded run, from any segment's record of its setup, and its method."""
    from cwbench.planning.plan import Run
    from cwbench.spec.segment import Setup

    entry = own_methods.get(record["method"]) or _installed(record["method"])
    method, tasks = entry.method, tuple(run["tasks"])
    setup = Setup.from_record(record, method.config_class)
    if task := edited_task(record["env"], setup.env):
        raise UserError(f"task {task['name']}: {task['callable']} has changed since then")
    made = method.segments_of_run(setup, run["seed"], tasks)
    if [s.id for s in made] != list(run["segments"]) or setup.source != entry.source:
        raise UserError("its method has changed since then")
    return Run(run["sequence"], tasks, run["label"], run["protocol"], tuple(made)), method


def _installed(name: str) -> Entry:
    """The method of a record: a built-in or installed one, never a file that the record names."""
    from cwbench.methods import known, load, unusable

    if ".py" in name:
        what = f"the record names a method file, {name}"
        raise UserError(what, "name your own copy with --method")
    if name not in {*known(), *unusable()}:
        hint = f"name it with --method FILE.py:{name}; a notebook's own is retried by its same call"
        raise UserError(f"method {name!r} is not installed", hint)
    return load(name)[1]


def _reset(folders: Mapping[SegmentFolder, str], restart: bool) -> None:
    """Let segments be trained again that are still in these states, and nobody else's."""
    from cwbench.fleet import snapshot
    from cwbench.store.claims import EMPTY_SECONDS, Claims, owner

    with Claims() as own:
        taken = set(filter(own.take, folders))
        unowned = [one for one in folders if not (one in taken or one.done or owner(one))]
        if unowned:  # only a claim that stays empty was left by a process that was killed
            time.sleep(EMPTY_SECONDS + 0.1)
            taken.update(filter(own.take, unowned))
        for folder, state in folders.items():
            if folder in taken and folder.state == state:
                from_start = restart or state == "diverged"
                if from_start:
                    snapshot.discard(folder.snapshot)
                folder.set_status("pending", **({"step": 0} if from_start else {}))
            else:
                click.echo(f"{folder.path.name} is in use or has changed since and is left out")
            own.release(folder)
