"""A results folder becomes a report: tables, figures and one page."""

import gc
import os
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import NamedTuple

from cwbench.reports.analysis import plasticity, problems, tuned
from cwbench.reports.analysis.arrange import arrange
from cwbench.reports.analysis.intervals import INTERVALS
from cwbench.reports.analysis.scores import Scores
from cwbench.reports.analysis.study import DEFAULTS, Options, Study
from cwbench.reports.checklist import checklist
from cwbench.reports.page import page
from cwbench.reports.tables import catalog, paper_numbers
from cwbench.reports.tables.formats import FORMATS, tex
from cwbench.reports.tables.model import Table
from cwbench.reports.tables.verify import sign
from cwbench.store import tuning
from cwbench.store.files import naming_errors, replacing
from cwbench.store.runs import load_runs, together

PREAMBLE = r"""\documentclass[10pt]{article}
\usepackage[utf8]{inputenc}
\usepackage[margin=2cm]{geometry}
\usepackage{amsmath,bm,booktabs,graphicx}
% As many floats as a large report has; LaTeX stops at 52 otherwise.
\extrafloats{500}\maxdeadcycles=500
\renewcommand\topfraction{0.95}\renewcommand\floatpagefraction{0.7}
\begin{document}
"""

WRITTEN = INTERVALS[:2]  # the kinds of interval with their own files
NO_CAPTIONS: Mapping[str, str] = {}
Tables = Sequence[tuple[str, Scores, Table]]


KINDS = ("tables/*.tex", "tables/*.md", "tables/*.csv", "figures/*.pdf", "figures/*.png")


@dataclass(frozen=True)
class Made:
    """What a report run left behind, for the command line to print."""

    page: Path
    tables: int
    figures: int
    problems: list[str]
    compared: bool  # with published numbers
    leftover: list[str] = field(default_factory=list)  # files of an earlier report, not written now


def report_folder(results: Path) -> Path:
    """Where the report of a results folder goes unless another folder is given."""
    return results / "report"


def read(results: Path, options: Options = DEFAULTS, *, more: Sequence[Path] = ()) -> Study:
    """Load and arrange a results folder (and more). UserError if the options do not fit it."""
    folders = [results, *more]
    loaded = together([load_runs(folder) for folder in folders])
    study = arrange(loaded, options)
    plasticity.add(study, loaded.diagnostics)
    chosen = [record for f in folders for record in tuning.read_all(f, study.problems)]
    tuned.mark(study, chosen)
    notes = [*tuned.problems(study), *problems.notes(study, loaded)]
    # Runs under two protocol names are in two groups.
    study.notes = list(dict.fromkeys([*study.notes, *notes]))
    found = [*study.problems, *problems.find(study, loaded), *notes]
    study.problems = list(dict.fromkeys(found))
    if not study.groups:
        study.problems.append(f"{results} holds no runs")
    return study


def tables_of(
    study: Study,
    only: str | None = None,
    *,
    compare: str | None = None,
    scores_of: Sequence[Scores] = (),
) -> Iterator[tuple[str, Scores, Table]]:
    """Name for files, scores and table, over all protocols; protocols are never mixed.

    `compare` names a source of published numbers and adds the tables that show them next to ours.
    `scores_of` has the scores of each protocol, where the caller has them.
    """
    for scores in scores_of or [Scores(study, protocol) for protocol in study.protocols]:
        wanted = [(scores, entry) for entry in catalog.entries(scores)]
        for source in [compare] if compare else catalog.SOURCES if only else []:
            published = catalog.as_published(scores, source)
            wanted += [(published, e) for e in catalog.published_entries(published, source)]
        for scores, entry in wanted:
            if only in (None, entry.name):
                table = catalog.make(scores, entry)
                if not table.empty:
                    yield table.file, scores, table


def table_names(study: Study) -> list[str]:
    found = [e.name for p in study.protocols for e in catalog.entries(Scores(study, p))]
    return list(dict.fromkeys(found))


def write_tables(tables: Tables, out: Path, captions: Mapping[str, str] = NO_CAPTIONS) -> list[str]:
    """Every table in every format, and `report.tex` with these and the figures; returns the names.

    `captions` are those of the figures, by name.

    Tables with intervals come twice, `NAME-t` with Student's; a CSV holds all kinds.
    """
    (out / "tables").mkdir(parents=True, exist_ok=True)
    written = []
    included: dict[str, list[str]] = {interval: [] for interval in WRITTEN}
    for name, scores, table in tables:
        for interval in WRITTEN if table.scored else WRITTEN[:1]:
            stem = f"tables/{name}{'-t' * (interval == 't')}"
            included[interval].append(stem)
            for format, (_, suffix) in FORMATS.items():
                if format != "csv" or interval == WRITTEN[0]:
                    text = sign(scores, table, format, interval)
                    (out / f"{stem}{suffix}").write_text(text, encoding="utf-8")
                    written.append(f"{stem}{suffix}")
    first, second = ([rf"\input{{{stem}}}" for stem in stems] for stems in included.values())
    parts = {
        "Tables": first,
        "Figures": [latex_figure(*figure) for figure in captions.items()],
        "The same tables with Student t intervals": second,
    }
    body = [
        "\n".join([rf"\section*{{{title}}}", *lines, r"\clearpage"])
        for title, lines in parts.items()
        if lines
    ]
    text = PREAMBLE + "\n".join([*(body or ["No runs."]), r"\end{document}", ""])
    (out / "report.tex").write_text(text, encoding="utf-8")
    return ["report.tex", *written]


def latex_figure(name: str, caption: str) -> str:
    """A figure of the report folder in its own size, which fits the text; smaller if too high."""
    return (
        r"\begin{figure*}[!htp]\centering\resizebox{!}"
        r"{\ifdim\height>0.85\textheight 0.85\textheight\else\height\fi}"
        rf"{{\includegraphics{{figures/{name}.pdf}}}}"
        rf"\caption{{{tex(caption)}}}\label{{figure:{name}}}\end{{figure*}}"
    )


def write_page(
    results: Path,
    out: Path,
    *,
    more: Sequence[Path] = (),
    compare: str | None = None,
    linked: bool = True,
) -> Path:
    """Only the page, e.g. every minute during a run. Unfinished runs are shown as such.

    Without `linked` the page names segment folders but does not link to them: to be published.
    """
    study = read(results, more=more)
    tables = list(tables_of(study, compare=compare))
    return _page(study, tables, results, out, linked=linked, lint=_lint(compare))


def _lint(compare: str | None) -> list[str] | None:
    """What is impossible among the published numbers that are shown."""
    return None if compare is None else paper_numbers.lint() if compare == "paper" else []


def _page(
    study: Study,
    tables: Tables,
    results: Path,
    out: Path,
    *,
    files: Sequence[str] = (),
    lint: Sequence[str] | None = None,
    linked: bool = True,
) -> Path:
    """Replace the page in one step: a browser may be reading it."""
    out.mkdir(parents=True, exist_ok=True)
    results_href = Path(os.path.relpath(results, out)).as_posix() if linked else None
    text = page.render(
        study, tables, results=results, results_href=results_href, files=files, lint=lint
    )
    file = out / "index.html"
    with replacing(file) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return file


_drawing: list[Study] = []  # what the drawing process works on: handed over when it starts


@cache
def _drawn_scores(protocol: int) -> Scores:
    """One for all figures of a drawing process, which share many estimates."""
    [study] = _drawing
    return Scores(study, study.protocols[protocol])


def _begin(study: Study) -> None:
    _drawing[:] = [study]
    _drawn_scores.cache_clear()


def _begin_process(study: Study) -> None:
    gc.freeze()  # the study stays: collections need not search it each time
    _begin(study)


@contextmanager
def _drawer(study: Study) -> Iterator[Executor | None]:
    """A process that draws; none where CUDA is in use, which no forked process survives."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        yield None
        return
    pool = ProcessPoolExecutor(1, initializer=_begin_process, initargs=(study,))
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)  # after an error or Ctrl-C some are left


class Drawing(NamedTuple):
    protocol: int
    name: str
    file: Path  # without suffix
    caption: str


def _draw(figure: Drawing, suffixes: Sequence[str]) -> None:
    from cwbench.reports.figures import figures

    figures.draw(_drawn_scores(figure.protocol), figure.name, figure.file, suffixes)


def figure_plan(scores_of: Sequence[Scores], out: Path) -> list[Drawing]:
    """Every figure."""
    from cwbench.reports.figures import figures

    found = []
    for index, scores in enumerate(scores_of):
        end = scores.study.ending(scores.protocol)
        said = f" Protocol {scores.study.title(scores.protocol)}." if end else ""
        for name, planned in figures.plan(scores).items():
            file = out / "figures" / f"{name}{end}"
            found.append(Drawing(index, name, file, planned.caption + said))
    return found


def _note_fonts(study: Study) -> None:
    from cwbench.reports.figures import fonts

    study.problems += [one for one in fonts.problems(study) if one not in study.problems]


def write_report(
    study: Study,
    results: Path,
    out: Path,
    *,
    compare: str | None = None,
    linked: bool = True,
    png: bool = False,
) -> Made:
    """The whole report folder. Another process draws while this one makes the tables and the page.

    Then this one draws the figures that the other has not begun, from the end of the list.
    """
    suffixes = (".pdf", ".png") if png else (".pdf",)
    (out / "figures").mkdir(parents=True, exist_ok=True)
    _begin(study)
    scores_of = [_drawn_scores(index) for index in range(len(study.protocols))]
    plan = figure_plan(scores_of, out)
    _note_fonts(study)
    with naming_errors(out), _drawer(study) as pool:
        drawn = [pool.submit(_draw, figure, suffixes) if pool else None for figure in plan]
        tables = list(tables_of(study, compare=compare, scores_of=scores_of))
        files = write_tables(tables, out, {one.file.name: one.caption for one in plan})
        files += [f"figures/{one.file.name}{end}" for one in plan for end in suffixes]
        (out / "checklist.md").write_text(checklist(study), encoding="utf-8")
        files.append("checklist.md")
        lint = _lint(compare)
        index = _page(study, tables, results, out, files=files, lint=lint, linked=linked)
        for job, figure in zip(reversed(drawn), reversed(plan), strict=True):
            if job is None or job.cancel():
                _draw(figure, suffixes)
        for job in drawn:
            if job and not job.cancelled():
                job.result()
    compared = any(table.section == "published" for _, _, table in tables)
    return Made(index, len(tables), len(plan), study.problems, compared, leftover(out, files))


def leftover(out: Path, files: Collection[str]) -> list[str]:
    """Tables and figures in a report folder other than these: of runs or settings gone since."""
    found = [f"{file.parent.name}/{file.name}" for kind in KINDS for file in out.glob(kind)]
    return sorted(set(found) - set(files))
