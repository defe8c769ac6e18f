"""`cwbench bench`: speed, as ratios measured side by side in one process."""

import json

import click


@click.group()
def bench() -> None:
    """Measure speed, side by side with others."""


@bench.command("envs")
@click.option("--tasks", help="Task names joined by commas.  [default: the ten]")
@click.option(
    "--seconds", default=2.0, show_default=True, type=click.FloatRange(0.01), help="Per task."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def bench_envs(tasks: str | None, seconds: float, as_json: bool) -> None:
    """Environment steps per second, ours against stock Meta-World, resets included."""
    from cwbench import envs
    from cwbench.cli.info import show
    from cwbench.envs.bench import bench as measure

    names = tasks.split(",") if tasks else list(envs.TASKS)
    for name in names:
        if name not in envs.TASKS:
            raise click.UsageError(
                f"no fast environment {name!r}; the ten: {', '.join(envs.TASKS)}"
            )
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


def _numbers(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise click.BadParameter(f"{text!r} is not a list of numbers such as 1,8,50") from None


@bench.command("update")
@click.option("--runs", default="1,2,4,8", show_default=True, help="Fleet sizes.")
@click.option("--seconds", default=3.0, show_default=True, type=click.FloatRange(0.01))
@click.option(
    "--device", default="auto", show_default=True, type=click.Choice(["auto", "cpu", "cuda"])
)
@click.option("--threads", default=None, help="Thread counts, on a CPU.  [default: 1 and all]")
@click.option("--compile/--no-compile", "compiled", default=False)
@click.option("--tf32/--no-tf32", default=True)
@click.option("--batch-size", default=128, show_default=True, type=click.IntRange(1))
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def bench_update(
    runs: str,
    seconds: float,
    device: str,
    threads: str | None,
    compiled: bool,
    tf32: bool,
    batch_size: int,
    as_json: bool,
) -> None:
    """Updates per second of plain SAC with the published networks, for fleets of several sizes."""
    import torch

    from cwbench.benchmarks import update_speed
    from cwbench.cli.execute import pick_device
    from cwbench.cli.info import show
    from cwbench.estimate import cores

    torch.backends.cuda.matmul.allow_tf32 = tf32
    place = pick_device(device)
    counts = _numbers(threads) if threads else sorted({1, cores()})
    rows = []
    for count in counts if place.type == "cpu" else [1]:
        torch.set_num_threads(count)
        for size in _numbers(runs):
            speed = update_speed(size, place, batch_size, compiled=compiled, seconds=seconds)
            rows.append({"runs": size, "threads": count, "updates_per_s": speed})
    if as_json:
        click.echo(json.dumps(rows, indent=1))
        return
    show(
        [
            (
                str(row["runs"]),
                str(row["threads"]),
                f"{row['updates_per_s']:.1f}",
                f"{row['runs'] * row['updates_per_s']:.1f}",
            )
            for row in rows
        ],
        "runs",
        "threads",
        "updates/s",
        "run-updates/s",
    )
