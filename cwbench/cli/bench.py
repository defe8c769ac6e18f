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
