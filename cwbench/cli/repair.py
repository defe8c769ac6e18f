"""`cwbench repair`: set damaged segments aside, so that the next run trains them again."""

from pathlib import Path

import click

from cwbench.cli.console import show
from cwbench.cli.folders import PATH, existing
from cwbench.experiment.results_folder import open_store


@click.command()
@click.argument("results", default="results", type=PATH)
@click.option("--dry-run", is_flag=True, help="List and stop.")
def repair(results: Path, dry_run: bool) -> None:
    """Move damaged segments to RESULTS/damaged. Nothing is deleted.

    Every file with a checksum is read. The command that made the runs then trains what is missing,
    each segment from its parent. Segments that a process is training stay.
    """
    from cwbench.store import claims
    from cwbench.store.integrity import all_damages, set_aside
    from cwbench.store.results import SegmentFolder

    open_store(existing(results))
    found = {one.segment or one.file: one for one in all_damages(results)}
    for name, one in list(found.items()):
        if one.segment and claims.owner(SegmentFolder(results / "segments" / name)):
            click.echo(f"{name} is being trained and stays: {one.file}: {one.reason}")
            del found[name]
    if not found:
        click.echo(f"nothing to repair in {results}")
        return
    moved = {name: "" if dry_run else str(set_aside(results, one)) for name, one in found.items()}
    show([(one.file, one.reason, moved[name]) for name, one in found.items()],
         "file", "damage", "now at")  # fmt: skip
    if dry_run:
        click.echo(f"{len(found)} would be set aside; nothing is moved")
    else:
        click.echo(f"{len(found)} set aside; the command that made the runs trains what is missing")
