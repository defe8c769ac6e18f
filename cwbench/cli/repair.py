"""`cwbench repair`: set damaged segments aside, so that the next run trains them again."""

from pathlib import Path

import click

from cwbench.cli.console import show
from cwbench.cli.folders import PATH, results_folder
from cwbench.experiment.results_folder import open_store


@click.command()
@click.argument("results", default="results", type=PATH)
@click.option("--dry-run", is_flag=True, help="List and stop.")
def repair(results: Path, dry_run: bool) -> None:
    """Move damaged segments to RESULTS/damaged. Nothing is deleted.

    Every file with a checksum is read. The command that made the runs then trains what is missing,
    each segment from its parent. Segments that a process is training stay, and so does everything
    that a link leads to or that another user keeps private.
    """
    from cwbench.store import claims
    from cwbench.store.integrity import damages, full_check, is_movable, is_still, set_aside

    store = open_store(results_folder(results))
    found = {one.segment or one.file: one for one in damages(results, full_check)}
    for name, one in list(found.items()):
        if one.segment and not one.denied and claims.owner(store.named(name)):
            click.echo(f"{name} is being trained and stays: {one.file}: {one.reason}")
            del found[name]
    if not found:
        click.echo(f"nothing to repair in {results}")
        return
    rows, moved = [], 0
    for one in found.values():
        if not is_movable(results, one):
            there = "stays"
        elif dry_run:
            there, moved = "", moved + 1
        elif is_still(results, one):
            there, moved = str(set_aside(results, one)), moved + 1
        else:  # everything has been read since it was found: it may have been trained again
            there = "changed since: stays"
        rows.append((one.file, one.reason, there))
    show(rows, "file", "damage", "now at")
    if dry_run:
        click.echo(f"{moved} would be set aside; nothing is moved")
    else:
        then = "; the command that made the runs trains what is missing" if moved else ""
        click.echo(f"{moved} set aside{then}")
