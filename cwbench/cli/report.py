"""`cwbench report` and `cwbench verify`."""

import re
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from cwbench.cli.console import json_option, show, show_problems
from cwbench.cli.doctor import list_damages
from cwbench.cli.folders import PATH, PathName
from cwbench.cli.options import Number
from cwbench.experiment.results_folder import check_version, check_writable
from cwbench.reports import build
from cwbench.reports.analysis import names
from cwbench.reports.analysis.bands import BANDS
from cwbench.reports.analysis.intervals import INTERVALS
from cwbench.reports.analysis.study import Options, Study
from cwbench.reports.tables.catalog import SOURCES, published_names
from cwbench.reports.tables.formats import FORMATS, markdown_cell
from cwbench.reports.tables.verify import recipe_of, recipe_options, sign, tables_in
from cwbench.reports.tables.verify import verify as verify_table
from cwbench.spec.errors import UserError, located, unknown
from cwbench.spec.files import read_text
from cwbench.spec.statistics import SUCCESS_COLUMNS
from cwbench.spec.text import as_command, counted
from cwbench.store.files import check_output
from cwbench.store.merge import ARCHIVES, opened
from cwbench.store.results import segment_files


def unpacked(source: Path) -> Path:
    """A results folder; an archive is unpacked until the command ends."""
    if source.name.endswith(ARCHIVES) and source.is_file():
        return click.get_current_context().with_resource(opened(source))
    return source


def read_study(results: Path, options: Options, source: Path | None = None) -> Study:
    """`source` is what the user named, where that is an archive."""
    if not results.is_dir():
        raise click.UsageError(f"no results folder at {str(results)!r}: give the one of your runs")
    check_version(results)
    study = build.read(results, options)
    if not study.groups:
        list_problems(study.problems[:-1])  # the last one says the same
        if not segment_files(results):
            raise UserError(f"{source or results} holds no runs", "`cwbench run` writes some")
        hint = "the command that trained its segments records them again"
        raise click.ClickException(f"{source or results} holds no runs: {hint}")
    return study


def _patterns(_: click.Context, __: click.Parameter, text: str) -> tuple[str, ...]:
    """Names between commas; commas in parentheses belong to a label."""
    parts = (part.strip() for part in re.split(r",(?![^(]*\))", text))
    return tuple(part for part in parts if part)


@click.command()
@click.argument("paths", nargs=-1, type=PathName(), metavar="[RESULTS] [OUT]")
@click.option("--results", type=PATH, help="Another way to give RESULTS.")
@click.option(
    "--window",
    type=Number(int, minimum=1, maximum=10**6),
    help="Evaluations in an end value.  [default: a fifth of a task's]",
)
@click.option("--table", "name", help="Only this table: to OUT, or to the screen without it.")
@click.option(
    "--format",
    "format",
    type=click.Choice(list(FORMATS)),
    help="Format of the table.  [default: by the ending of OUT, .tex, .md or .csv; else latex]",
)
@click.option(
    "--interval",
    type=click.Choice(INTERVALS),
    help="Interval shown in the table.  [default: bootstrap]",
)
@click.option(
    "--level",
    type=Number(float, minimum=0.5, maximum=0.999),
    default=Options.level,
    show_default=True,
    help="Level of all intervals.",
)
@click.option(
    "--band",
    type=click.Choice(list(BANDS)),
    default=Options.band,
    show_default=True,
    help="Around curves: t interval over seeds, bootstrap percentiles, one standard deviation, "
    "or every run as a line.",
)
@click.option(
    "--seq",
    "sequences",
    default="",
    metavar="NAMES",
    callback=_patterns,
    help="Only these sequences, such as cw3-1,cw3-2 or 'cw3-*'.",
)
@click.option(
    "--method",
    "methods",
    default="",
    metavar="LABELS",
    callback=_patterns,
    help="Only these methods, named as `cwbench status --runs` shows them: `recall` has its "
    "default options, 'recall*' all.",
)
@click.option(
    "--protocol",
    "protocols",
    default="",
    metavar="NAMES",
    callback=_patterns,
    help="Only these protocols, as files of tables name them: compact, or demo-5f7989.",
)
@click.option("--against", metavar="METHOD", help="Compare the other methods with this one only.")
@click.option(
    "--compare", type=click.Choice(SOURCES), help="Put published numbers next to these results."
)
@click.option(
    "--success",
    type=click.Choice(list(SUCCESS_COLUMNS)),
    help="Count an episode as solved by the test of Meta-World 3 or V1, at any step or at the "
    "last.  [default: as the published numbers were counted when shown next to them and if "
    "recorded; otherwise as the protocol counts]",
)
@click.option("--png", is_flag=True, help="Draw figures as PNG, too; that takes longer.")
@click.option("--all-cells", is_flag=True, help="With --compare: cells without a run here, too.")
def report(
    paths: tuple[str, ...],
    results: Path | None,
    window: int | None,
    name: str | None,
    format: str | None,
    interval: str | None,
    level: float,
    band: str,
    sequences: tuple[str, ...],
    methods: tuple[str, ...],
    protocols: tuple[str, ...],
    against: str | None,
    compare: str | None,
    png: bool,
    all_cells: bool,
    success: str | None,
) -> None:
    """Turn a results folder into tables, figures and a page.

    RESULTS is ./results and OUT is RESULTS/report unless given. A lone `-` is OUT: the screen.
    RESULTS may be an archive that `cwbench merge` wrote.
    """
    given = list(paths)
    out = given.pop() if given and (given[-1] == "-" or len(given) == 2 - bool(results)) else None
    source = results or Path(given.pop(0) if given else "results")
    if given:
        raise click.UsageError(f"too many arguments: {' '.join(paths)}; at most RESULTS and OUT")
    if out not in (None, "-") and name is None and Path(out).is_file():
        raise click.UsageError(f"{out} is a file, not a folder; give OUT another name")
    if name is not None and png:
        raise click.UsageError("--png draws figures; --table NAME writes none")
    if name is None and (format or interval or out == "-"):
        raise click.UsageError("--format, --interval and `-` need --table NAME")
    if name is None and out and _named_format(out):
        raise click.UsageError(f"{out} is named like a table's file; --table NAME writes one")
    folder = unpacked(source)
    if folder != source and name is None and out is None:
        raise click.UsageError(f"{source} is an archive: give OUT, a folder for its report")
    target = Path(out) if out else build.report_folder(source)
    if name is None:
        with located(f"report folder {target}"):
            check_writable(check_output(source, target))
    study = read_study(
        folder,
        Options(
            window=window,
            level=level,
            band=band,
            against=against,
            all_cells=all_cells,
            success=success,
            protocols=protocols,
            sequences=sequences,
            methods=methods,
        ),
        source,
    )
    _check_against(study)
    if name is not None:
        write_table(
            study, name, format or _named_format(out) or "latex", interval or INTERVALS[0], out
        )
        return
    linked = folder == source
    made = build.write_report(study, folder, target, compare=compare, linked=linked, png=png)
    if compare and not made.compared:
        click.echo(f"--compare {compare}: none of its numbers has a counterpart in these runs")
    announce(made)


def _check_against(study: Study) -> None:
    wanted = study.options.against
    known, others = ({group.method for group in found} for found in (study.groups, study.others))
    if not wanted or any(names.same_method(method, wanted) for method in known):
        return
    if any(names.same_method(method, wanted) for method in others):
        raise UserError(f"--against {wanted} is left out by --method, --seq or --protocol")
    raise unknown("method", wanted, sorted(known), f"these results have {', '.join(sorted(known))}")


def _named_format(out: str | None) -> str | None:
    """The format that a file's name asks for."""
    formats = {suffix: name for name, (_, suffix) in FORMATS.items()}
    return formats.get(Path(out or "").suffix)


def write_report_into(results: Path, *, quiet: bool) -> Study | None:
    """The whole report in the results folder, where an experiment ends with it; what it shows."""
    try:
        target = check_output(results, build.report_folder(results))
    except UserError as error:
        hint = f"{as_command('report', results, 'OUT')} writes one elsewhere"
        click.echo(f"no report: {error.message}; {hint}", err=True)
        return None
    study = read_study(results, Options())
    announce(build.write_report(study, results, target), quiet=quiet)
    return study


def show_table(study: Study, name: str) -> None:
    """A table's rows on the screen, for each protocol of the results."""
    for _, scores, table in build.tables_of(study, name):
        click.echo(f"\n{table.name}, protocol {study.slug(scores.protocol)}:")
        for block in table.blocks:
            rows = [
                (label, *(markdown_cell(cell, INTERVALS[0]).replace("**", "") for cell in cells))
                for label, cells in block.rows
            ]
            show(rows, block.corner, *block.full_columns)


def announce(made: build.Made, *, quiet: bool = False) -> None:
    """What was written, and what is wrong with the results."""
    if not quiet:
        problems = counted(len(made.problems), "problem")
        click.echo(
            f"{counted(made.tables, 'table')}, {counted(made.figures, 'figure')}, {problems}"
        )
    list_problems(made.problems)
    if made.leftover:
        old = f"{counted(len(made.leftover), 'file')} of an earlier report, such as"
        click.echo(f"left as they were: {old} {made.leftover[0]}", err=True)
    if not quiet:
        click.echo(made.page)


def list_problems(problems: Sequence[str]) -> None:
    show_problems(problems[:10])
    if len(problems) > 10:
        show_problems([f"{len(problems) - 10} more, all on the page"])


def write_table(study: Study, name: str, format: str, interval: str, out: str | None) -> None:
    """One table; once per protocol where there are several."""
    tables = [(scores, table) for _, scores, table in build.tables_of(study, name)]
    if not tables:
        known = build.table_names(study)
        if name in known:
            raise UserError(f"table {name!r} has no numbers", "the page says what is missing")
        if name in published_names():
            raise UserError(
                f"table {name!r}: none of its numbers has a counterpart in these runs",
                "runs with other options than published, or left out, have none",
            )
        advice = f"these results have: {', '.join(known) or 'no runs'}"
        raise unknown("table", name, known, advice)
    text = "\n".join(sign(scores, table, format, interval) for scores, table in tables)
    if out in (None, "-"):
        click.echo(text, nl=False)
    else:
        assert out
        Path(out).write_text(text, encoding="utf-8")


def _containing(table: Path) -> Path:
    """The results folder that a table is in, or `results`."""
    usual = Path("results")
    folders = (one for one in table.absolute().parents if (one / "segments").is_dir())
    found = next(folders, usual)
    if not found.is_dir():
        raise click.UsageError(
            f"no results folder at {str(usual)!r}: give the one of {table} with --results"
        )
    return found


@click.command()
@click.argument("table", metavar="TABLE|RESULTS", type=PathName(exists=True, path_type=Path))
@click.option(
    "--results",
    type=PATH,
    help="The results folder the table was made from.  [default: the one it is in, or results]",
)
@json_option
@click.pass_context
def verify(ctx: click.Context, table: Path, results: Path | None, as_json: bool) -> None:
    """Check an exported table, or a results folder.

    A table is computed again: equal, or which cell differs. Of a folder, every file is compared
    with the checksum that was recorded for it.
    """
    if table.is_dir() or table.name.endswith(ARCHIVES):
        if list_damages(table, as_json, full=True):
            ctx.exit(1)
        return
    if as_json:
        raise click.UsageError("--json is for results folders; a table gives lines")
    with located(str(table)):
        texts = tables_in(read_text(table))
        options = [recipe_options(recipe_of(text)) for text in texts]
    results = results or _containing(table)
    folder = unpacked(results)
    verdicts = [
        verify_table(text, read_study(folder, one, results), results)
        for text, one in zip(texts, options, strict=True)
    ]
    differences = [line for verdict in verdicts for line in verdict.differences]
    for line in differences:
        click.echo(line)
    if differences:
        sys.exit(1)
    click.echo(f"equal: {sum(verdict.cells for verdict in verdicts)} cells")
