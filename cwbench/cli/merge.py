"""`cwbench merge`: several results folders as one."""

from pathlib import Path

import click

from cwbench.cli.console import show_problems
from cwbench.cli.folders import PATH, writable
from cwbench.spec.text import counted


@click.command()
@click.argument("sources", nargs=-1, required=True, type=PATH, metavar="RESULTS...")
@click.option("--into", required=True, type=PATH, metavar="TARGET",
              help="Folder, .tar.gz or .tgz, new or to be added to.")  # fmt: skip
@click.option("--weights", is_flag=True, help="Copy weights and replay, too.")
@click.option("--experiment", "experiments", multiple=True, metavar="NAME",
              help="Only the runs of this experiment. May be given several times.")  # fmt: skip
@click.pass_context
def merge(
    ctx: click.Context,
    sources: tuple[Path, ...],
    into: Path,
    weights: bool,
    experiments: tuple[str, ...],
) -> None:
    """Add the finished segments of results folders or archives to another one.

    Records stay as they are, so each segment still says where, when and with which version it was
    trained. Without --weights the target holds what reports read, in a few kilobytes per segment;
    sequences cannot be continued from it, unless weights are merged into it later. Segments of one
    id with different evaluations are refused before anything is written. A damaged segment of the
    target is replaced. One that is paused, or damaged and has weights, is replaced only by a
    finished one with weights. Exits with code 1 where something that
    is damaged, paused or being trained was left out.
    """
    from cwbench.store.merge import ARCHIVES
    from cwbench.store.merge import merge as merge_folders

    writable(into.parent if into.name.endswith(ARCHIVES) else into)
    merged = merge_folders(sources, into, weights=weights, experiments=experiments)
    line = f"{counted(merged.added, 'segment')} added to {into}"
    if merged.replaced:
        line += f", {merged.replaced:,} in place of damaged ones"
    if merged.present:
        line += f", {merged.present:,} were there"
    if merged.repeated:
        line += f", {merged.repeated:,} were in several sources"
    click.echo(line)
    for kind, folders in (("unfinished", merged.unfinished), ("damaged", merged.damaged)):
        if folders:
            click.echo(f"{counted(len(folders), f'{kind} segment')} left out")
    show_problems(merged.problems)
    if merged.problems:
        ctx.exit(1)
