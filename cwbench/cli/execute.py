"""From runs to trained segments: plan, say so, train, say how it ended."""

import os
import platform
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from cwbench import __version__
from cwbench.results import Store

LONG_SECONDS = 86_400  # above this a terminal is asked before anything starts


@dataclass(frozen=True)
class Execution:
    """How to train, as opposed to what: nothing here changes what a result means."""

    results: Path
    device: str
    workers: int | None
    threads: int | None
    fleet_size: int | None
    compiled: bool
    tf32: bool
    snapshot_minutes: float
    live: bool
    dry_run: bool
    quiet: bool
    yes: bool

    @staticmethod
    def take(given: dict[str, Any]) -> "Execution":
        """Take these options out of all that were given."""
        return Execution(**{field.name: given.pop(field.name) for field in fields(Execution)})


OPTIONS = (
    click.option(
        "--results", default="results", show_default=True, type=click.Path(path_type=Path),
        help="Folder.",
    ),
    click.option(
        "--device", default="auto", show_default=True, type=click.Choice(["auto", "cpu", "cuda"]),
        help="Where to train.",
    ),
    click.option("--workers", type=click.IntRange(1), help="Processes that step environments."),
    click.option("--threads", type=click.IntRange(1), help="Threads that train, on a CPU."),
    click.option("--fleet-size", type=click.IntRange(1), help="Runs trained together, at most."),
    click.option(
        "--compile/--no-compile", "compiled", default=False, help="Fuse losses; takes a minute."
    ),
    click.option("--tf32/--no-tf32", default=True, help="On CUDA, multiply in TF32: ten times "
        "faster, good to three decimals.  [default: on]"),
    click.option(
        "--snapshot-minutes", default=10.0, show_default=True, type=click.FloatRange(0),
        help="Time between snapshots.",
    ),
    click.option(
        "--live/--no-live", default=True, help="Keep RESULTS/report/index.html up to date."
    ),
    click.option("--dry-run", is_flag=True, help="Show the plan and stop."),
    click.option("--quiet", is_flag=True, help="Show nothing but problems."),
    click.option("--yes", is_flag=True, help="Do not ask, however long it takes."),
)  # fmt: skip


def execution_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(OPTIONS):
        command = option(command)
    return command


def confirm(seconds: float) -> None:
    """Ask before a run of days, where there is someone to ask."""
    from cwbench.progress import duration

    if sys.stdin.isatty():
        click.confirm(f"this takes about {duration(seconds)}; go on?", abort=True)


def pick_device(name: str) -> Any:
    """The device of that name, with torch set up for it."""
    import torch

    # Not measured but decided, for every platform: a measured choice could differ when a run is
    # continued, and with it the last bits. On ARM, oneDNN takes all cores whatever number of
    # threads is asked for (docs/performance.md).
    torch.backends.mkldnn.enabled = False  # type: ignore[assignment]

    if name == "cuda" and not torch.cuda.is_available():
        raise click.UsageError(
            "--device cuda: no CUDA device is available; use --device cpu or auto"
        )
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.device(name)


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


def about(protocol: str, device: Any, compiled: bool) -> dict[str, Any]:
    """What a segment's record says beside what decides its numbers."""
    from importlib.metadata import version

    packages = ("torch", "mujoco", "metaworld", "numpy")
    return {
        "protocol": protocol,
        "versions": {
            "cwbench": __version__,
            "commit": commit(),
            "python": platform.python_version(),
        }
        | {name: version(name) for name in packages},
        "machine": {
            "host": platform.node(),
            "cpu": platform.machine(),
            "system": platform.system(),
        },
        "device": _device_record(device, compiled),
        "command": shlex.join(["cwbench", *sys.argv[1:]]),
        "created": time.time(),
    }


def commit() -> str:
    """The commit of a checkout this package runs from; empty for an installed package."""
    root = Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return ""
    command = ["git", "-C", str(root), "rev-parse", "--short=12", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True).stdout.strip()
    except OSError:  # no git on this machine
        return ""


def _device_record(device: Any, compiled: bool) -> dict[str, Any]:
    """What changes the last digits of a result but not what it means."""
    import torch

    record: dict[str, Any] = {"type": device.type, "compiled": compiled}
    if device.type == "cuda":
        record["name"] = torch.cuda.get_device_name()
        record["tf32"] = torch.backends.cuda.matmul.allow_tf32
    return record


def say(console: Console, text: str) -> None:
    console.print(text, highlight=False, soft_wrap=True)


def print_plan(console: Console, plan: Any, guess: Any, device: Any, workers: int) -> None:
    from cwbench.estimate import size
    from cwbench.progress import duration

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
    import torch

    from cwbench import envs, snapshot
    from cwbench.cli.live import LivePage
    from cwbench.estimate import cores, estimate, pick_threads
    from cwbench.plan import make_plan
    from cwbench.pool import Pool
    from cwbench.progress import make_progress
    from cwbench.runner import Runner

    console = Console(stderr=False)
    store, device = open_store(execution.results), pick_device(execution.device)
    torch.backends.cuda.matmul.allow_tf32 = execution.tf32
    cuda = device.type == "cuda"
    plan = make_plan(
        runs,
        store,
        execution.fleet_size or (100 if cuda else 8),
        lambda segment: snapshot.step_of(store.folder(segment).snapshot),
    )
    largest = max(map(len, plan.fleets), default=1)
    workers = execution.workers or min(cores(), 2 * largest)
    if plan.missing:
        torch.set_num_threads(execution.threads or pick_threads(plan, envs.obs_dim, device))
    if not execution.quiet or execution.dry_run:
        measure = bool(plan.missing)
        guess = estimate(plan, methods, envs.obs_dim, device, workers, measure=measure)
        print_plan(console, plan, guess, device, workers)
        if not (execution.dry_run or execution.yes) and (guess.seconds or 0) > LONG_SECONDS:
            confirm(guess.seconds or 0)
    if execution.dry_run:
        return True
    protocol = runs[0].protocol
    record = about(protocol, device, execution.compiled)
    for title, members in ({name: runs} if parts is None else parts).items():
        store.add_experiment(
            {"name": title, "command": record["command"], "created": record["created"]}
            | {"runs": [run.record() for run in members]}
        )
    if not plan.missing:
        say(console, f"nothing to train: results are in {store.root}")
        return True
    runner = Runner(
        store,
        methods,
        device,
        envs.obs_dim,
        halves=2 if cuda else 1,
        compiled=execution.compiled,
        snapshot_seconds=60 * execution.snapshot_minutes,
        about=lambda segment: record,
    )
    total = sum(segment.steps for fleet in plan.fleets for segment in fleet)
    with (
        LivePage(store.root) if execution.live else nullcontext(),
        Pool(workers, envs.ACTION_DIM) as pool,
        make_progress(total, console, quiet=execution.quiet) as shown,
    ):
        outcome = runner.run(plan, pool, shown)
    if execution.live and not execution.quiet:
        say(console, f"page: {store.root / 'report' / 'index.html'}")
    return report_outcome(console, outcome, store, record["command"])


def report_outcome(console: Console, outcome: Any, store: Store, command: str) -> bool:
    for folder, message in outcome.failed.items():
        say(console, f"failed: {folder}: {message}")
    for folder in outcome.diverged:
        say(console, f"diverged: {folder}")
    if outcome.elsewhere:
        say(console, f"{outcome.elsewhere} segments are being trained by another process")
    if outcome.skipped:
        say(console, f"{outcome.skipped} segments wait for one that is not done")
    if outcome.interrupted:
        say(console, f"stopped; to continue: {command}")
    say(console, f"{outcome.trained} segments trained; results are in {store.root}")
    return not (outcome.failed or outcome.diverged or outcome.interrupted)
