"""From runs to trained segments: plan, say so, train, say how it ended."""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from cwbench.experiment.execution import Execution, planned_device
from cwbench.experiment.launching import make_launcher
from cwbench.experiment.live_page import LivePage
from cwbench.experiment.provenance import about
from cwbench.store.results import Store

# The cost per run falls with the number of runs up to these, and hardly beyond
# (docs/performance.md); so fleets are as large as these and memory allow.
MOST_RUNS = {"cpu": 8, "cuda": 100}
LONG_SECONDS = 86_400  # above this a terminal is asked before anything starts


def confirm(seconds: float) -> None:
    """Ask before a run of days, where there is someone to ask."""
    from cwbench.fleet.progress import duration

    if sys.stdin.isatty():
        click.confirm(f"this takes about {duration(seconds)}; go on?", abort=True)


def open_store(folder: Path) -> Store:
    """A results folder that can be written to, or one clear line."""
    parent = next(p for p in [folder, *folder.resolve().parents] if p.exists())
    if not parent.is_dir():
        raise click.UsageError(f"--results {folder}: {parent} is a file, not a folder")
    if not os.access(parent, os.W_OK):
        raise click.UsageError(f"--results {folder}: {parent} is not writable")
    store = Store(folder)
    if newer := store.newer_schema():
        raise click.UsageError(
            f"--results {folder}: {newer} was written by a newer cwbench; "
            "upgrade, or use another folder"
        )
    return store


def say(console: Console, text: str) -> None:
    console.print(text, highlight=False, soft_wrap=True)


def print_plan(console: Console, plan: Any, guess: Any, device: Any, workers: int) -> None:
    from cwbench.fleet.progress import duration
    from cwbench.planning.estimate import size

    total = len(plan.segments)
    say(
        console,
        f"{len(plan.runs)} runs = {total} segments, {total - plan.missing} done, "
        f"{plan.missing} to train in {len(plan.fleets)} fleets on {device.type}, {workers} workers",
    )
    if not plan.missing:
        return
    say(
        console,
        f"steps: {guess.steps:,} training + {guess.eval_steps:,} evaluation; "
        f"updates: {guess.updates:,}",
    )
    device_text = f", device {size(guess.device_bytes)}" if guess.device_bytes else ""
    say(
        console,
        f"memory: host {size(guess.host_bytes)}{device_text}; disk {size(guess.disk_bytes)}",
    )
    if guess.seconds is not None:
        say(console, f"about {duration(guess.seconds)} from a short measurement on this machine")


@dataclass(frozen=True)
class Work:
    """What all steps of training a plan need."""

    store: Store
    methods: Mapping[str, Any]
    device: Any
    execution: Execution
    console: Console

    @cached_property
    def costs(self) -> Any:
        from cwbench.planning.estimate import Costs

        return Costs(self.methods, self.device, compiled=bool(self.execution.compiled))

    @property
    def turns(self) -> Any:
        from cwbench.planning.plan import in_turns, no_turns

        return in_turns if self.device.type == "cuda" else no_turns

    @property
    def places(self) -> int:
        """Devices of this machine that train side by side."""
        import torch

        many = self.device.type == "cuda" and self.execution.launching.launcher == "local"
        return max(1, torch.cuda.device_count()) if many else 1

    def plan(self, runs: Sequence[Any], segments: Sequence[Any] = ()) -> Any:
        """Fleets of what is missing, as large as is useful and fits."""
        from cwbench.fleet import snapshot
        from cwbench.planning.estimate import Memory, cores, size
        from cwbench.planning.plan import TooLarge, make_plan

        most = self.execution.fleet_size or MOST_RUNS[self.device.type]
        step = lambda segment: snapshot.step_of(self.store.folder(segment).snapshot)  # noqa: E731
        rules: dict[str, Any] = {"segments": segments, "places": self.places}
        if not self.execution.launching.here:  # another machine's memory is for its own plan
            return make_plan(runs, self.store, most, step, **rules)
        memory = Memory(
            self.costs,
            self.execution.workers or min(cores(), 2 * most),
            self.turns,
            self.execution.launching.per_device,
        )
        try:
            return make_plan(runs, self.store, most, step, fits=memory.fits, **rules)
        except TooLarge as error:
            raise click.UsageError(
                f"{error}: one run needs {size(memory.needed([error.segment]))} of memory and "
                f"{size(memory.free)} are free; try a smaller --buffer-size"
            ) from None

    def workers(self, plan: Any) -> int:
        from cwbench.planning.estimate import cores

        return self.execution.workers or min(cores(), 2 * max(map(len, plan.fleets), default=1))

    def set_up_torch(self, plan: Any) -> None:
        import torch

        from cwbench.planning.estimate import pick_threads

        torch.backends.cuda.matmul.allow_tf32 = self.execution.tf32
        if plan.missing:
            torch.set_num_threads(self.execution.threads or pick_threads(plan, self.costs))


def execute(
    runs: list[Any],
    methods: Mapping[str, Any],
    execution: Execution,
    *,
    name: str,
    parts: Mapping[str, list[Any]] | None = None,
) -> bool:
    """Plan, say so, train. False if something failed or was interrupted.

    The runs are recorded as an experiment of that name, or as several: `parts`, by name.
    """
    store, device = open_store(execution.results), planned_device(execution)
    if execution.launching.here:
        steps = max(segment.steps for run in runs for segment in run.segments)
        execution = execution.settled(device, steps)
    printing = execution.launching.launcher == "print"  # then nothing else goes to the output
    work = Work(store, methods, device, execution, Console(stderr=printing))
    plan = work.plan(runs)
    if execution.launching.here:
        work.set_up_torch(plan)
    if not execution.quiet or execution.dry_run:
        present(work, plan)
    if execution.dry_run:
        return True
    launcher = make_launcher(execution.launching, execution.results, device)
    if plan.missing and launcher is not None:
        launcher.check()
    record = about(runs[0].protocol, device, bool(execution.compiled))
    for title, members in ({name: runs} if parts is None else parts).items():
        store.add_experiment(
            {"name": title, "command": record["command"], "created": record["created"]}
            | {"runs": [run.record() for run in members]}
        )
    if not plan.missing:
        say(work.console, f"nothing to train: results are in {store.root}")
        return True
    live = execution.live and execution.launching.waits
    if live and not execution.quiet:
        page = store.root / "report" / "index.html"
        say(work.console, f"page: {page.resolve().as_uri()}, rewritten every minute")
    with LivePage(store.root) if live else nullcontext():
        if launcher is None:
            good = bool(train(work, plan, record).good)
        else:
            good = launch(work, plan, launcher, record)
    return good


def present(work: Work, plan: Any) -> None:
    """Say what will be done, and ask if it takes days."""
    from cwbench.planning.estimate import estimate

    execution, workers = work.execution, work.workers(plan)
    here = execution.launching.here
    guess = estimate(plan, work.costs, workers, turns=work.turns, measure=here)
    print_plan(work.console, plan, guess, work.device, workers)
    if not (execution.dry_run or execution.yes) and (guess.seconds or 0) > LONG_SECONDS:
        confirm(guess.seconds or 0)


def train(work: Work, plan: Any, record: Mapping[str, Any]) -> Any:
    """In this process, on one device."""
    from cwbench import envs
    from cwbench.fleet.progress import make_progress
    from cwbench.fleet.runner import Runner
    from cwbench.rollout.pool import Pool

    execution, console = work.execution, work.console
    runner = Runner(
        work.store,
        work.methods,
        work.device,
        envs.sizes,
        turns=work.turns,
        compiled=bool(execution.compiled),
        snapshot_seconds=60 * execution.snapshot_minutes,
        about=lambda segment: record,
    )
    total = sum(segment.steps for fleet in plan.fleets for segment in fleet)
    with (
        Pool(work.workers(plan)) as pool,
        make_progress(total, console, quiet=execution.quiet) as shown,
    ):
        outcome = runner.run(plan, pool, shown)
    report_outcome(console, outcome, work.store, record["command"])
    return outcome


def launch(work: Work, plan: Any, launcher: Any, record: Mapping[str, Any]) -> bool:
    """Through commands of their own, here or elsewhere."""
    from cwbench.launch import Task
    from cwbench.launch.jobs import write_jobs

    asked = {key: record[key] for key in ("protocol", "command")}
    jobs = write_jobs(plan, work.store, method_names(work.methods), asked)
    arguments = work.execution.arguments()
    tasks = [Task(job, ["train", str(job.file), *arguments]) for job in jobs]
    try:
        launcher.launch(tasks, teller(work))
    except KeyboardInterrupt:
        say(work.console, f"stopped; to continue: {record['command']}")
        return False
    return not work.execution.launching.waits or report_states(work, plan)


def teller(work: Work) -> Callable[[str], None]:
    """What a launcher says goes where the user looks for it."""
    if work.execution.launching.launcher == "print":
        return click.echo
    return (lambda text: None) if work.execution.quiet else partial(say, work.console)


def method_names(methods: Mapping[str, Any]) -> dict[str, str]:
    """Recorded name -> a name under which another process finds the method."""
    import inspect

    from cwbench.methods import known

    names = known()
    return {
        name: name if name in names else f"{Path(inspect.getfile(kind)).resolve()}:{kind.__name__}"
        for name, kind in methods.items()
    }


def report_states(work: Work, plan: Any) -> bool:
    """What other processes left of a plan."""
    states = {s.folder: work.store.folder(s).status() for fleet in plan.fleets for s in fleet}
    for folder, status in states.items():
        if status["state"] in ("failed", "diverged"):
            say(work.console, f"{status['state']}: {folder}: {status['message']}")
    done = sum(status["state"] == "done" for status in states.values())
    if done < len(states):
        say(work.console, f"{len(states) - done} segments are not done; the same command continues")
    say(work.console, f"{done} segments trained; results are in {work.store.root}")
    return bool(done == len(states))


def report_outcome(console: Console, outcome: Any, store: Store, command: str) -> None:
    for folder, message in outcome.failed.items():
        say(console, f"failed: {folder}: {message}")
    for folder in outcome.diverged:
        say(console, f"diverged: {folder}")
    if outcome.elsewhere:
        say(console, f"{outcome.elsewhere} segments were trained by other processes")
    if outcome.skipped:
        say(console, f"{outcome.skipped} segments wait for one that is not done")
    if outcome.interrupted:
        say(console, f"stopped; to continue: {command}")
    say(console, f"{outcome.trained} segments trained; results are in {store.root}")
