"""`cwbench run`: names and options become objects here, then the runner takes over."""

import os
import platform
import shlex
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import nullcontext
from copy import copy
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from cwbench import __version__, options, sequences
from cwbench.config import GROUPS, PROTOCOLS, NetworkConfig
from cwbench.results import Store


def parse_seeds(text: str) -> list[int]:
    """`3`, `0-4`, `0,2,5-7` -> numbers, each once."""
    seeds: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise click.BadParameter(f"{text!r} is not a list of seeds such as 3, 0-4 or 0,2,5-7")
        seeds += range(int(first), int(last or first) + 1)
    if not seeds:
        raise click.BadParameter(f"{text!r} names no seed: the range runs backwards")
    return list(dict.fromkeys(seeds))


def parse_unshared(text: str | None) -> list[str]:
    """`actor`, `critic` or `actor,critic` -> networks of which each task has its own."""
    names = [part.strip() for part in text.split(",")] if text else []
    if unknown := set(names) - {"actor", "critic"}:
        raise click.BadParameter(
            f"--unshared {text}: {min(unknown)!r} is neither actor nor critic; "
            "write actor, critic or actor,critic"
        )
    return names


def with_unshared(
    names: list[str], entry: Any, protocol: str, given: Mapping[str, Any]
) -> dict[str, Any]:
    """The given options, with all hidden layers of these networks in the tasks' heads."""
    order = layers(entry, protocol, given)
    count = options.resolve(NetworkConfig, *order).layers
    result = dict(given)
    for name in names:
        field = f"{name}_head_layers"
        if given.get(field) not in (None, count):
            flag = options.flag_name(field)
            raise click.UsageError(f"--unshared {name} means --{flag} {count}; give only one")
        result[field] = count
    return result


def load_method(name: str) -> tuple[str, Any]:
    from cwbench import methods

    try:
        return methods.load(name)
    except KeyError:
        known = methods.known()
        hint = sequences.closest(name, known)
        raise click.UsageError(
            f"unknown method {name!r}{hint} `cwbench methods` lists all {len(known)}"
        ) from None
    except ValueError as error:
        raise click.UsageError(str(error)) from None


def layers(entry: Any, protocol: str, given: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    """Where values come from, first wins: command line, protocol, variant, method's preset."""
    return (given, PROTOCOLS[protocol], entry.options, entry.method.preset)


class MethodCommand(click.Command):
    """A command whose options depend on --method, so that none is valid only sometimes."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any
    ) -> click.Context:
        name, protocol = _peek(args, "--method"), _peek(args, "--protocol") or "paper"
        command = copy(self)  # the next call may name another method
        if name and protocol in PROTOCOLS:
            _, entry = load_method(name)
            shown = layers(entry, protocol, {})
            for group in (entry.method.config_class, *GROUPS.values()):
                resolved = asdict(options.resolve(group, *shown))
                command.params = [*command.params, *options.click_options(group, resolved)]
        return click.Command.make_context(command, info_name, args, parent, **extra)


def _peek(args: list[str], flag: str) -> str | None:
    for index, arg in enumerate(args):
        if arg == flag and index + 1 < len(args):
            return args[index + 1]
        if arg.startswith(f"{flag}="):
            return arg.partition("=")[2]
    return None


def pick_device(name: str) -> Any:
    import torch

    if name == "cuda" and not torch.cuda.is_available():
        raise click.UsageError(
            "--device cuda: no CUDA device is available; use --device cpu or auto"
        )
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.device(name)


def set_precision(tf32: bool) -> None:
    """TF32 products on CUDA are about ten times faster and good to three decimals."""
    import torch

    torch.backends.cuda.matmul.allow_tf32 = tf32


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


def make_setup(method: str, entry: Any, protocol: str, given: Mapping[str, Any]) -> Any:
    from cwbench.segment import Setup

    order = layers(entry, protocol, given)
    groups: dict[str, Any] = {
        name: options.resolve(group, *order) for name, group in GROUPS.items()
    }
    network = groups["network"]
    for name in ("actor_head_layers", "critic_head_layers"):
        if getattr(network, name) > network.layers:
            raise click.UsageError(f"--{name.replace('_', '-')} is larger than --layers")
    own = options.resolve(entry.method.config_class, *order)
    return Setup(method, own, source=entry.source, **groups)


def make_runs(
    entry: Any, label: str, setup: Any, protocol: str, sequence: Any, seeds: list[int]
) -> list[Any]:
    from cwbench.plan import Run
    from cwbench.segment import path

    kind = entry.method
    return [
        Run(
            sequence.name,
            sequence.tasks,
            label,
            protocol,
            tuple(
                path(setup, seed, sequence.tasks, needs_length=kind.needs_length, joint=kind.joint)
            ),
        )
        for seed in seeds
    ]


def make_label(name: str, given: Mapping[str, Any], entry: Any, unshared: list[str]) -> str:
    """The method's name, the options of its own that the command line changed, and --unshared."""
    own = [field.name for field in fields(entry.method.config_class)]
    changed = [
        f"{options.flag_name(key)}={given[key]}" for key in own if given.get(key) is not None
    ]
    changed += [f"unshared {' and '.join(sorted(unshared))}"] if unshared else []
    return f"{name} ({', '.join(changed)})" if changed else name


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


@click.command(cls=MethodCommand)
@click.option("--method", "name", required=True, help="A method, or path/to/file.py:ClassName.")
@click.option(
    "--seq", "sequence", required=True, multiple=True,
    help="A sequence: name, tasks a,b,c or file.toml. May be given several times.",
)  # fmt: skip
@click.option("--seeds", default="0", show_default=True, help="Seeds: 3, 0-4 or 0,2,5-7.")
@click.option("--protocol", default="paper", show_default=True, help="paper, compact or smoke.")
@click.option(
    "--results",
    default="results",
    show_default=True,
    type=click.Path(path_type=Path),
    help="Folder.",
)
@click.option(
    "--device", default="auto", show_default=True, type=click.Choice(["auto", "cpu", "cuda"]),
    help="Where to train.",
)  # fmt: skip
@click.option("--workers", type=click.IntRange(1), help="Processes that step environments.")
@click.option("--threads", type=click.IntRange(1), help="Threads that train, on a CPU.")
@click.option("--fleet-size", type=click.IntRange(1), help="Runs trained together, at most.")
@click.option(
    "--compile/--no-compile", "compiled", default=False, help="Fuse losses; takes a minute."
)
@click.option("--tf32/--no-tf32", default=True, help="On CUDA, multiply in TF32.  [default: on]")
@click.option(
    "--snapshot-minutes", default=10.0, show_default=True, type=click.FloatRange(0),
    help="Time between snapshots.",
)  # fmt: skip
@click.option(
    "--unshared", metavar="NETWORKS", help="actor, critic or actor,critic: one network per task."
)
@click.option("--live/--no-live", default=True, help="Keep RESULTS/report/index.html up to date.")
@click.option("--dry-run", is_flag=True, help="Show the plan and stop.")
@click.option("--quiet", is_flag=True, help="Show nothing but problems.")
@click.pass_context
def run(
    ctx: click.Context,
    /,
    name: str,
    sequence: tuple[str, ...],
    seeds: str,
    protocol: str,
    results: Path,
    device: str,
    workers: int | None,
    threads: int | None,
    fleet_size: int | None,
    compiled: bool,
    tf32: bool,
    snapshot_minutes: float,
    unshared: str | None,
    live: bool,
    dry_run: bool,
    quiet: bool,
    **given: Any,
) -> None:
    """Train a method on a sequence. The same command again continues where it stopped."""
    from cwbench import envs

    if protocol not in PROTOCOLS:
        hint = sequences.closest(protocol, PROTOCOLS)
        raise click.UsageError(f"unknown protocol {protocol!r}{hint} Known: {', '.join(PROTOCOLS)}")
    method, entry = load_method(name)
    try:
        wanted = [sequences.get(text, envs.all_tasks()) for text in dict.fromkeys(sequence)]
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    set_precision(tf32)
    alone = parse_unshared(unshared)
    setup = make_setup(method, entry, protocol, with_unshared(alone, entry, protocol, given))
    label = make_label(name, given, entry, alone)
    numbers = parse_seeds(seeds)
    runs = [run for one in wanted for run in make_runs(entry, label, setup, protocol, one, numbers)]
    ok = execute(
        runs,
        {method: entry.method},
        open_store(results),
        name=f"{label} on {', '.join(one.name for one in wanted)}",
        device=pick_device(device),
        workers=workers,
        threads=threads,
        fleet_size=fleet_size,
        compiled=compiled,
        snapshot_seconds=60 * snapshot_minutes,
        live=live,
        dry_run=dry_run,
        quiet=quiet,
    )
    if not ok:
        ctx.exit(1)


def execute(
    runs: list[Any],
    methods: Mapping[str, Any],
    store: Store,
    *,
    name: str,
    device: Any,
    workers: int | None,
    threads: int | None,
    fleet_size: int | None,
    compiled: bool,
    snapshot_seconds: float,
    live: bool,
    dry_run: bool,
    quiet: bool,
) -> bool:
    """Plan, say so, train. False if something failed or was interrupted."""
    import torch

    from cwbench import envs, snapshot
    from cwbench.cli.live import LivePage
    from cwbench.estimate import cores, estimate, pick_threads
    from cwbench.plan import make_plan
    from cwbench.pool import Pool
    from cwbench.progress import make_progress
    from cwbench.runner import Runner

    console = Console(stderr=False)
    cuda = device.type == "cuda"
    plan = make_plan(
        runs,
        store,
        fleet_size or (100 if cuda else 8),
        lambda segment: snapshot.step_of(store.folder(segment).snapshot),
    )
    largest = max(map(len, plan.fleets), default=1)
    workers = workers or min(cores(), 2 * largest)
    # On ARM, oneDNN multiplies batches with a transposed factor, as every backward pass does, up to
    # 80 times slower than torch does without it; elsewhere torch does not use it for this.
    torch.backends.mkldnn.enabled = False  # type: ignore[assignment]
    if plan.missing:
        torch.set_num_threads(threads or pick_threads(plan, envs.obs_dim, device))
    if not quiet or dry_run:
        measure = bool(plan.missing)
        guess = estimate(plan, methods, envs.obs_dim, device, workers, measure=measure)
        print_plan(console, plan, guess, device, workers)
    if dry_run:
        return True
    protocol = runs[0].protocol
    record = about(protocol, device, compiled)
    store.add_experiment(
        {"name": name, "command": record["command"], "created": record["created"]}
        | {"runs": [run.record() for run in runs]}
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
        compiled=compiled,
        snapshot_seconds=snapshot_seconds,
        about=lambda segment: record,
    )
    total = sum(segment.steps for fleet in plan.fleets for segment in fleet)
    with (
        LivePage(store.root) if live else nullcontext(),
        Pool(workers, envs.ACTION_DIM) as pool,
        make_progress(total, console, quiet=quiet) as shown,
    ):
        outcome = runner.run(plan, pool, shown)
    if live and not quiet:
        say(console, f"page: {store.root / 'report' / 'index.html'}")
    return report_outcome(console, outcome, store, record["command"])


def report_outcome(console: Console, outcome: Any, store: Store, command: str) -> bool:
    for folder, message in outcome.failed.items():
        say(console, f"failed: {folder}: {message}")
    for folder in outcome.diverged:
        say(console, f"diverged: {folder}")
    if outcome.skipped:
        say(console, f"{outcome.skipped} segments wait for one that failed or diverged")
    if outcome.interrupted:
        say(console, f"stopped; to continue: {command}")
    say(console, f"{outcome.trained} segments trained; results are in {store.root}")
    return not (outcome.failed or outcome.diverged or outcome.interrupted)
