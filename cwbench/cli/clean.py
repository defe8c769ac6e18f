"""`cwbench clean`: remove files of a results folder that nothing needs any more."""

from pathlib import Path

import click

from cwbench.cli.console import show
from cwbench.cli.folders import PATH, results_folder
from cwbench.experiment.results_folder import open_store
from cwbench.spec.text import counted


@click.command()
@click.argument("results", default="results", type=PATH)
@click.option("--dry-run", is_flag=True, help="List and stop.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def clean(results: Path, dry_run: bool, yes: bool) -> None:
    """Remove snapshots, replay memories and claims that no recorded run needs any more.

    Evaluations, weights at the end of a task and all records stay, so reports do not change and
    unfinished experiments continue. If its method replays stored data, a longer sequence that
    begins like a finished one needs a new results folder, where the beginning is trained again.
    """
    from cwbench.planning.machine import size
    from cwbench.store.cleanup import leftovers, remove

    open_store(results_folder(results))
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
    total, items = size(sum(item.bytes for item in found)), counted(len(found), "item")
    if dry_run:
        click.echo(f"{total} in {items}; nothing is removed")
        return
    if not yes:
        click.confirm(f"remove {total} in {items}?", abort=True)
    gone = remove(results, found)  # looks again: another process may have come since
    click.echo(f"removed {size(sum(item.bytes for item in gone))}")
    if len(gone) < len(found):
        used = counted(len(found) - len(gone), "item is", "items are")
        click.echo(f"{used} in use by now and not removed")
