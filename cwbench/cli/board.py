"""`cwbench board`: results of several contributors on one static site."""

import re
from contextlib import ExitStack
from pathlib import Path

import click

from cwbench.cli.folders import PATH
from cwbench.reports import build
from cwbench.reports.board import check, site
from cwbench.spec.errors import UserError
from cwbench.spec.text import counted
from cwbench.store.merge import opened

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@click.command()
@click.argument("contributions", nargs=-1, required=True, metavar="[NAME=]RESULTS...")
@click.option("--out", type=PATH, metavar="SITE", help="Write the site into this folder.")
@click.option("--check", "only_check", is_flag=True, help="Only say what is wrong.")
def board(contributions: tuple[str, ...], out: Path | None, only_check: bool) -> None:
    """Check contributed results and show them on one site.

    A contribution is a results folder or .tar.gz, with the contributor's name before `=`. It is
    refused, line by line, if records were changed, runs are unfinished, a protocol's name stands
    for other settings, or the source of an own method is missing. None of its code is run.
    """
    if not only_check and out is None:
        raise UserError("--out SITE is missing", "or use --check")
    named = [_parse(text) for text in contributions]
    if len({name for name, _, _ in named}) < len(named):
        raise UserError("two contributions have the same name", "rename a folder or archive")
    with ExitStack() as stack:
        folders = [stack.enter_context(opened(path)) for _, _, path in named]
        entries = []
        refused = 0
        for (name, contributor, _), folder in zip(named, folders, strict=True):
            study = build.read(folder)
            faults = check.faults(study, folder)
            click.echo(f"{name}: {counted(len(faults), 'fault') if faults else 'accepted'}")
            for fault in faults:
                click.echo(f"  {fault}")
            refused += bool(faults)
            entries.append(site.Entry(name, contributor, study))
        if refused:
            raise click.exceptions.Exit(1)
        if out is not None and not only_check:
            for entry, folder in zip(entries, folders, strict=True):
                build.write_report(entry.study, folder, out / entry.name)
            (out / "index.html").write_text(site.render(entries), encoding="utf-8")
            click.echo(out / "index.html")


def _parse(text: str) -> tuple[str, str, Path]:
    """Name of the contribution, contributor and path."""
    contributor, equals, path = text.rpartition("=")
    name = Path(path).name.removesuffix(".tar.gz")
    if not NAME.fullmatch(name):
        raise UserError(f"{path}: not a name for a web address", "use letters, digits, . _ -")
    return name, contributor if equals else name, Path(path)
