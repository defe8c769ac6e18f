"""`cwbench bench`: the speed of environments, updates and whole fleets, against others'."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import click

from cwbench.cli import Commands
from cwbench.cli.console import json_option, show
from cwbench.cli.folders import PATH
from cwbench.cli.options import Number, field_option, methods_option
from cwbench.experiment.execution import Execution
from cwbench.spec.config import SACConfig, ScheduleConfig
from cwbench.spec.errors import UserError
from cwbench.spec.text import counted

SECONDS = Number(float, minimum=0.01, maximum=3600)
LENGTH = Number(int, minimum=1, maximum=10)
COUNT = Number(int, minimum=1, maximum=10_000)

device_option = field_option(Execution, "device")
tf32_option = field_option(Execution, "tf32")
length_option = click.option(
    "--length", default=1, show_default=True, type=LENGTH, help="Number of tasks."
)


@click.group(cls=Commands)
def bench() -> None:
    """Measure speed, against other projects."""


@bench.command("envs", short_help="Environments against stock Meta-World or EnvPool.")
@click.option(
    "--against", default="stock", show_default=True, type=click.Choice(["stock", "envpool"]),
    help="Meta-World itself, or EnvPool (the extra `bench`).",
)  # fmt: skip
@click.option("--tasks", help="Task names joined by commas.  [default: the ten; EnvPool: all]")
@click.option("--seconds", default=2.0, show_default=True, type=SECONDS, help="Seconds per task.")
@json_option
def bench_envs(against: str, tasks: str | None, seconds: float, as_json: bool) -> None:
    """Environment steps per second on one core, resets included, compared with others.

    Against stock Meta-World: V1 rewards, 12 observed numbers, CPU time. Against EnvPool: v2
    rewards, 39 observed numbers, the fastest round of each, in wall time and in CPU time, which
    varies less on a busy machine.
    """
    from cwbench.spec.tasks import CW_TASKS, METAWORLD_TASKS

    known = CW_TASKS if against == "stock" else METAWORLD_TASKS
    names = list(known) if tasks is None else list(dict.fromkeys(tasks.split(",")))
    for name in names:
        if name not in known:
            raise UserError(f"no fast environment {name!r}; there are: {', '.join(known)}")
    (_against_stock if against == "stock" else _against_envpool)(names, seconds, as_json)


def _against_stock(names: list[str], seconds: float, as_json: bool) -> None:
    from cwbench.envs.speed import bench as measure

    table = measure(names, seconds)
    if as_json:
        click.echo(json.dumps(table, indent=1))
        return
    rows = [
        (name, f"{row['stock']:.0f}", f"{row['ours']:.0f}", f"{row['ratio']:.2f}")
        for name, row in table.items()
        if name != "mean_ratio"
    ]
    show([*rows, ("mean", "", "", f"{table['mean_ratio']:.2f}")], "task", "stock", "ours", "ratio")


def _against_envpool(names: list[str], seconds: float, as_json: bool) -> None:
    from cwbench.bench.environments import NOTES, compare_environments, summarise

    rows = list(compare_environments(names, seconds))
    summary = summarise(rows)
    if as_json:
        click.echo(json.dumps({"tasks": rows, **summary, "notes": NOTES}, indent=1))
        return
    lines = [
        tuple(
            str(row[key]) if key == "task" else f"{row[key]:.{2 if 'ratio' in key else 0}f}"
            for key in row
        )
        for row in rows
    ]
    for name, found in summary.items():
        lines.append((name, "", "", f"{found['ratio']:.2f}", "", "", f"{found['ratio_cpu']:.2f}"))
    heads = ("ours", "EnvPool", "ratio", "ours, CPU", "EnvPool, CPU", "ratio, CPU")
    show(lines, "task", *heads)
    click.echo("\n".join(NOTES))


def _numbers(text: str) -> list[int]:
    parts = text.split(",")
    if not all(part.isdecimal() and len(part) < 6 and int(part) for part in parts):
        raise UserError(f"{text!r} is not a list of numbers such as 1,8,50, each below 100,000")
    return [int(part) for part in parts]


@bench.command("update", short_help="Updates, of plain SAC against Stable-Baselines3.")
@methods_option(help="A method, several joined by commas, or all.")
@length_option
@click.option("--runs", default="1,2,4,8", show_default=True, help="Fleet sizes.")
@click.option("--seconds", default=5.0, show_default=True, type=SECONDS, help="Seconds per row.")
@click.option(
    "--rounds", default=5, show_default=True, type=COUNT,
    help="Alternating rounds, on a CPU.",
)  # fmt: skip
@device_option
@click.option("--threads", default=None, help="Thread counts, on a CPU.  [default: 1 and all]")
@field_option(
    Execution, "compile", "compiled", default=False,
    help="Measure compiled updates; on a CPU, plain ones too.",
)  # fmt: skip
@tf32_option
@field_option(SACConfig, "batch_size", default=None, show_default="the method's")
@json_option
def bench_update(
    names: tuple[str, ...],
    length: int,
    runs: str,
    seconds: float,
    rounds: int,
    device: str,
    threads: str | None,
    compiled: bool,
    tf32: bool,
    batch_size: int | None,
    as_json: bool,
) -> None:
    """Updates per second with the published networks, for fleets of several sizes.

    On a CPU and without --method: plain SAC against Stable-Baselines3 (if the extra `bench` is
    installed), in alternating rounds. The ratio compares run-updates per second.

    With --method: these methods in the last of --length tasks, on random transitions; ratios are
    relative to the first. `--method all` measures every method, fine-tuning first.
    """
    from cwbench.bench.updates import compare_methods, compare_updates
    from cwbench.experiment.execution import pick_device, set_up_torch
    from cwbench.methods import BASES
    from cwbench.planning.machine import cores

    set_up_torch(Execution(tf32=tf32))
    torch_device, sizes = pick_device(device), _numbers(runs)
    _check_compiler(compiled, torch_device.type)
    counts = sorted({1, cores()}) if threads is None else _numbers(threads)
    budget: dict[str, Any] = {"compiled": compiled, "seconds": seconds, "rounds": rounds}
    rows = []
    if torch_device.type == "cpu" and not names and length == 1:
        for count in counts:
            size = batch_size or SACConfig().batch_size
            rows += compare_updates(sizes, count, size, **budget)
    else:
        named = BASES if names == ("all",) else names or ("finetuning",)
        methods = _methods(named, {"batch_size": batch_size} if batch_size else {})
        for count in counts if torch_device.type == "cpu" else (1,):
            rows += compare_methods(methods, sizes, count, torch_device, length=length, **budget)
    _show_updates(rows, as_json)


def _methods(names: Iterable[str], given: Mapping[str, Any]) -> dict[str, Any]:
    """Setup and class of each method named, with the options given."""
    from cwbench.experiment.build import load_method, make_setup

    loaded = {name: load_method(name) for name in names}
    return {
        name: (make_setup(base, entry, "paper", given), entry.method)
        for name, (base, entry) in loaded.items()
    }


def _show_updates(rows: list[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(rows, indent=1))
        return
    base = rows[0].get("ratio_to", "")
    lines = [
        (
            str(row["what"]),
            str(row["runs"]),
            str(row["threads"]),
            f"{row['updates_per_s']:.1f}",
            f"{row['runs'] * row['updates_per_s']:.1f}",
            *([f"{row['ratio']:.2f}"] if base else []),
        )
        for row in rows
    ]
    heads = ("runs", "threads", "updates/s", "run-updates/s", *([f"x {base}"] if base else []))
    show(lines, "what", *heads)
    if base == "cwbench":
        click.echo(
            "stable-baselines3 is not installed (pip install 'cwbench[bench]'): "
            "ratios are to the first row"
        )


FLEET_SCHEDULE = {"start_steps": 500, "update_after": 500}  # a short task


@bench.command("fleet", short_help="Whole fleets: collection, updates, evaluation.")
@methods_option(
    default=("finetuning",),
    show_default=True,
    help="A method; of several, joined by commas, a fleet of each trains side by side.",
)
@click.option(
    "--runs",
    default="8",
    show_default=True,
    help="Runs per method; several sizes, such as 1,5,16, are measured in turn.",
)
@length_option
@click.option(
    "--steps",
    type=Number(int, minimum=700, maximum=10**6),
    help="Steps per task; at least 700, with several methods or groups 750.  "
    "[default: 800; with CUDA 600 + 4 x --eval-every]",
)
@field_option(
    ScheduleConfig,
    "eval_every",
    default=2000,
    help="Steps between evaluations. The defaults have the compact protocol's share of evaluation.",
)
@field_option(ScheduleConfig, "eval_episodes", default=2)
@device_option
@field_option(Execution, "workers", show_default="one per core")
@click.option(
    "--groups",
    type=COUNT,
    help="Groups of a fleet: one updates while workers collect for the others.  [default: by runs]",
)
@field_option(Execution, "compile", "compiled", default=False)
@tf32_option
@field_option(ScheduleConfig, "lag")
@field_option(Execution, "diagnostics", "diagnose", default=True)
@click.option("--timeline", type=PATH, help="Draw the last chunks into FILE.svg.")
@json_option
def bench_fleet(
    names: tuple[str, ...],
    runs: str,
    length: int,
    steps: int | None,
    eval_every: int,
    eval_episodes: int,
    device: str,
    workers: int | None,
    groups: int | None,
    compiled: bool,
    tf32: bool,
    lag: int,
    diagnose: bool,
    timeline: Path | None,
    as_json: bool,
) -> None:
    """Environment steps per second of whole fleets: collection, updates and evaluation.

    Trains in a temporary folder and measures the last task, after its first few hundred steps:
    throughput, the share of time in which the trainer updates and waits for workers, and the share
    in which workers collect and evaluate. us_per_step breaks down the time of one step of one run:
    collecting, waiting for the trainer, starting evaluations, copying to the replay, updates, and
    copying the new weights to the workers.
    """
    from cwbench.bench.fleets import WARM_STEPS, Bench, fleet_speed, process_seconds
    from cwbench.bench.timeline_figure import draw
    from cwbench.experiment.execution import pick_device, set_up_torch
    from cwbench.planning.machine import cores

    _check_picture(timeline)
    set_up_torch(Execution(tf32=tf32))
    torch_device = pick_device(device)
    _check_compiler(compiled, torch_device.type)
    steps = steps or (WARM_STEPS + 4 * eval_every if torch_device.type == "cuda" else 800)
    schedule = {"steps_per_task": steps, "eval_every": eval_every, "eval_episodes": eval_episodes}
    setups = list(_methods(names, FLEET_SCHEDULE | schedule | {"lag": lag}).values())
    imported = process_seconds()
    fleets = [
        Bench(setups, size, length, torch_device, workers or cores(), compiled, groups, diagnose)
        for size in _numbers(runs)
    ]
    for fleet in fleets:
        fleet.check()
    rows: list[dict[str, Any]] = []
    for fleet in fleets:
        speed, spans = fleet_speed(fleet)
        rows.append({"methods": list(names), "lag": lag, **speed})
    rows[0]["start_up"] = {"imports": imported, **rows[0]["start_up"]}
    if timeline:
        draw(spans, timeline)
    _show_fleets(rows, as_json)


def _check_compiler(compiled: bool, device: str) -> None:
    """Plain updates must not be shown as compiled ones."""
    from cwbench.learner.compiler import missing_compiler

    if compiled and (missing := missing_compiler(device)):
        raise UserError(f"--compile: {missing}")


def _check_picture(file: Path | None) -> None:
    """Before minutes of training: whether a picture can be written there."""
    from cwbench.experiment.results_folder import check_writable

    if file is None:
        return
    if file.suffix != ".svg":
        raise UserError(f"--timeline {file} is no SVG file", f"use {file.with_suffix('.svg')}")
    if not file.parent.is_dir():
        raise UserError(f"{file.parent}: no such folder", "create it, or choose another")
    check_writable(file.parent)


def _show_fleets(rows: list[dict[str, Any]], as_json: bool) -> None:
    """A column for each size."""
    if as_json:
        click.echo(json.dumps(rows, indent=1))
        return
    flat = [_flattened(row) for row in rows]
    lines = [(key, *(_cell(row.get(key, "")) for row in flat)) for key in flat[0]]
    show(lines, "what", *(counted(row["runs"], "run") for row in rows))


def _cell(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _flattened(row: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {"methods": ", ".join(row["methods"])}
    for key, value in row.items():
        if isinstance(value, dict):
            found |= {f"{key}: {part}": number for part, number in value.items()}
        elif key != "methods":
            found[key] = value
    return found
