"""A results folder becomes a report: tables, figures and one page."""

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from cwbench.reports import catalog, checks, page, published
from cwbench.reports.formats import FORMATS, INTERVALS
from cwbench.reports.scores import Scores
from cwbench.reports.study import Study, arrange
from cwbench.reports.tables import Table
from cwbench.reports.verify import sign
from cwbench.results import load_runs

PREAMBLE = r"""\documentclass[10pt]{article}
\usepackage[utf8]{inputenc}
\usepackage[margin=2cm]{geometry}
\usepackage{amsmath,bm,booktabs,graphicx}
\renewcommand\topfraction{0.95}\renewcommand\floatpagefraction{0.7}
\begin{document}
"""


Tables = Sequence[tuple[str, Scores, Table]]


@dataclass(frozen=True)
class Made:
    """What a report run left behind, for the command line to print."""

    page: Path
    tables: int
    figures: int
    problems: list[str]


def read(results: Path, window: int | None = None) -> Study:
    """Load and arrange a results folder. ValueError if the window does not fit."""
    loaded = load_runs(results)
    study = arrange(loaded, window)
    study.problems += checks.find(study, loaded)
    if not study.groups:
        study.problems.append(f"{results} holds no runs")
    return study


def tables_of(
    study: Study, only: str | None = None, *, paper: bool = False
) -> Iterator[tuple[str, Scores, Table]]:
    """Name for files, scores and table, over all protocols; protocols are never mixed.

    `paper` adds the tables that put printed cells beside ours.
    """
    for protocol in study.protocols:
        scores = Scores(study, protocol)
        end = f"-{study.slug(protocol)}" if len(study.protocols) > 1 else ""
        wanted = list(catalog.entries(scores))
        wanted += catalog.paper_entries(scores) if paper or only else []
        for entry in wanted:
            if only in (None, entry.name):
                table = catalog.make(scores, entry)
                if not table.empty:
                    yield table.name + end, scores, table


def table_names(study: Study) -> list[str]:
    found = [e.name for p in study.protocols for e in catalog.entries(Scores(study, p))]
    return list(dict.fromkeys(found))


def write_tables(tables: Tables, out: Path) -> None:
    """Every table in every format, and `report.tex` with all of them."""
    folder = out / "tables"
    folder.mkdir(parents=True, exist_ok=True)
    written = [name for name, _, _ in tables]
    for name, scores, table in tables:
        for format, (_, suffix) in FORMATS.items():
            for interval in INTERVALS if format != "csv" else INTERVALS[:1]:
                file = folder / f"{name}{'-t' * (interval == 't')}{suffix}"
                file.write_text(sign(scores, table, format, interval), encoding="utf-8")
    body = [rf"\input{{tables/{name}}}" + "\n" + r"\clearpage" for name in written]
    body += [r"\section*{The same tables with Student t intervals}"] if written else ["No runs."]
    body += [rf"\input{{tables/{name}-t}}" + "\n" + r"\clearpage" for name in written]
    text = PREAMBLE + "\n".join(body) + "\n\\end{document}\n"
    (out / "report.tex").write_text(text, encoding="utf-8")


def write_page(results: Path, out: Path) -> Path:
    """Only the page, e.g. every minute during a run. Unfinished runs are shown as such."""
    study = read(results)
    return _page(study, list(tables_of(study)), results, out)


def _page(
    study: Study,
    tables: Tables,
    results: Path,
    out: Path,
    *,
    linked: Sequence[str] = (),
    lint: Sequence[str] | None = None,
) -> Path:
    """Replace the page in one step: a browser may be reading it."""
    out.mkdir(parents=True, exist_ok=True)
    text = page.render(study, tables, results=results, out=out, linked=linked, lint=lint)
    file = out / "index.html"
    temporary = out / f".index.html.{os.getpid()}"
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(file)
    return file


_drawing: list[Study] = []  # what a drawing process works on: handed over when it starts


def _draw(protocol: int, name: str, file: Path) -> None:
    from cwbench.reports import figures

    [study] = _drawing
    figures.draw(Scores(study, study.protocols[protocol]), name, file)


def figure_plan(study: Study, out: Path) -> list[tuple[int, str, Path]]:
    """Protocol, name and file (without suffix) of every figure."""
    from cwbench.reports import figures

    found = []
    for index, protocol in enumerate(study.protocols):
        end = f"-{study.slug(protocol)}" if len(study.protocols) > 1 else ""
        for name, _ in figures.plan(Scores(study, protocol)):
            found.append((index, name, out / "figures" / f"{name}{end}"))
    return found


def write_report(
    study: Study, results: Path, out: Path, *, paper: bool = False, processes: int = 2
) -> Made:
    """The whole report folder. Figures are drawn by other processes while the tables are made."""
    (out / "figures").mkdir(parents=True, exist_ok=True)
    plan = figure_plan(study, out)
    with ProcessPoolExecutor(processes, initializer=_drawing.append, initargs=(study,)) as pool:
        drawn = [pool.submit(_draw, *figure) for figure in plan]
        tables = list(tables_of(study, paper=paper))
        write_tables(tables, out)
        linked = ["report.tex"]
        linked += [f"figures/{file.name}{end}" for _, _, file in plan for end in (".pdf", ".png")]
        for name, _, _ in tables:
            linked += [f"tables/{name}{end}" for end in (".tex", "-t.tex", ".md", "-t.md", ".csv")]
        lint = published.lint() if paper else None
        index = _page(study, tables, results, out, linked=linked, lint=lint)
        for job in drawn:
            job.result()
    return Made(index, len(tables), len(plan), study.problems)
