"""`cwbench board`: results of several contributors on one static site."""

import re
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import click

from cwbench.cli.folders import PATH, writable
from cwbench.reports import build
from cwbench.reports.board import check, site
from cwbench.spec.errors import UserError
from cwbench.spec.text import counted
from cwbench.store.merge import archive_stem, opened

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@click.command()
@click.argument("contributions", nargs=-1, required=True, metavar="[CONTRIBUTOR=]RESULTS...")
@click.option("--out", type=PATH, metavar="SITE", help="Write the site into this folder.")
@click.option("--check", "only_check", is_flag=True, help="Only say what is wrong.")
def board(contributions: tuple[str, ...], out: Path | None, only_check: bool) -> None:
    """Check contributed results and show them on one site.

    A contribution is a results folder or .tar.gz, with the contributor's name before `=`. It is
    refused, line by line, if records were changed, runs are unfinished, a protocol's name stands
    for other settings, or the source of a method of their own is missing. None of its code is run.
    """
    if not only_check and out is None:
        raise UserError("--out SITE is missing", "or use --check")
    if not only_check and out is not None:
        writable(out)
    named = _addressed([_parse(text) for text in contributions])
    with ExitStack() as stack:
        folders = [stack.enter_context(opened(path)) for _, _, path in named]
        entries = []
        refused = 0
        for (name, contributor, _), folder in zip(named, folders, strict=True):
            study = build.read(folder)
            faults = check.faults(study, folder)
            said = [counted(len(faults), "fault") if faults else "accepted"]
            said += [counted(len(study.notes), "note")] if study.notes else []
            click.echo(f"{name}: {', '.join(said)}")
            for line in [*faults, *(f"note: {note}" for note in study.notes)]:
                click.echo(f"  {line}")
            refused += bool(faults)
            entries.append(site.Entry(name, contributor, study))
        if refused:
            raise click.exceptions.Exit(1)
        if out is not None and not only_check:
            for entry, folder in zip(entries, folders, strict=True):
                build.write_report(entry.study, folder, out / entry.name)
            (out / "index.html").write_text(site.render(entries), encoding="utf-8")
            click.echo(out / "index.html")


Contribution = tuple[str, str, Path]  # its name, which is its address on the site; contributor


def _addressed(named: Sequence[Contribution]) -> list[Contribution]:
    """With the contributor in names that several contributions have."""
    often = Counter(name for name, _, _ in named)
    found: dict[str, Contribution] = {}
    for name, contributor, path in named:
        whose = re.sub(r"[^\w.-]+", "-", contributor)
        address = f"{name}-{whose}" if often[name] > 1 else name
        if address in found:
            what = f"two contributions of {contributor} are called {name}"
            raise UserError(what, "rename a folder or archive, or write CONTRIBUTOR=RESULTS")
        found[address] = address, contributor, path
    return list(found.values())


def _parse(text: str) -> Contribution:
    contributor, equals, path = text.rpartition("=")
    if equals and not contributor.strip():
        raise UserError(f"{text}: no contributor before =", "write CONTRIBUTOR=RESULTS or RESULTS")
    name = archive_stem(Path(path))
    if not NAME.fullmatch(name):
        raise UserError(f"{path}: not a name for a web address", "use letters, digits, . _ -")
    return name, contributor if equals else name, Path(path)
