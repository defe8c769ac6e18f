"""One self-contained page: opens from disk, needs no network, and no scripts to be read."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib import resources
from itertools import groupby
from pathlib import Path
from string import Template
from urllib.parse import quote

from cwbench.reports.analysis import names
from cwbench.reports.analysis.provenance import steps_and_seconds
from cwbench.reports.analysis.reference import find as find_reference
from cwbench.reports.analysis.scores import Scores
from cwbench.reports.analysis.study import Study
from cwbench.reports.page.charts import STYLE, curves_section
from cwbench.reports.page.live import live_section
from cwbench.reports.page.matrices import matrices_section
from cwbench.reports.page.overview import comparison_section, summary_charts
from cwbench.reports.page.runs import runs_section
from cwbench.reports.page.tables import block_table, link, whole_table
from cwbench.reports.page.videos import videos_section
from cwbench.reports.tables.model import Block, Cell, Section, Table
from cwbench.reports.tables.paper_comparison import overall
from cwbench.reports.tables.resources import count_text
from cwbench.spec.commit import commit_and_changes
from cwbench.spec.text import counted, file_name
from cwbench.store.status import UNFINISHED

Tables = Sequence[tuple[str, Scores, Table]]
SCRIPTS = ("charts.js", "tables.js", "page.js")


@dataclass(frozen=True)
class Part:
    """A part of the page with a heading."""

    title: str
    content: str
    protocol: str = ""  # where a study has several

    @property
    def anchor(self) -> str:
        return file_name(f"{self.title} {self.protocol}").lower()

    @property
    def html(self) -> str:
        mark = f' data-protocol="{escape(self.protocol)}"' if self.protocol else ""
        name = f" ({escape(self.protocol)})" if self.protocol else ""
        return (
            f'<section id="{escape(self.anchor)}"{mark}><h2>{escape(self.title)}{name}</h2>'
            f"{self.content}</section>"
        )


def asset(name: str) -> str:
    return (resources.files("cwbench.reports.page") / name).read_text(encoding="utf-8")


def render(
    study: Study,
    tables: Tables,
    *,
    results: Path,
    results_href: str | None,
    files: Sequence[str] = (),
    lint: Sequence[str] | None = None,
) -> str:
    """The page of a study.

    `results_href` leads from the page to the results folder (None: no links into it), `files` are
    files of the report folder to link to, `lint` what is impossible among the published numbers
    (None: no comparison with them was asked for).
    """
    runs = [run for group in study.groups for run in group.runs]
    share = sum(run.progress for run in runs) / len(runs) if runs else 0.0
    # Nothing is training in a published page or in an archive.
    live = results_href is not None and any(run.state in UNFINISHED for run in runs)
    paper = "Comparison with the published numbers"
    parts = [
        Part("Training now", live_section(study, results) if live else ""),
        *_protocols(study, tables, results_href),
        Part(
            "Videos",
            videos_section(study, results, results_href) if results_href is not None else "",
        ),
        Part(paper, _paper(tables, lint) if lint is not None else ""),
        Part("Problems", _problems(study.problems)),
        Part("Files", _files(files)),
    ]
    parts = [part for part in parts if part.content]
    now = time.strftime("%Y-%m-%d %H:%M:%S %Z")
    name = results.resolve().name
    name += f" (only {study.options.selection})" if study.options.selection else ""
    return Template(asset("page.html")).substitute(
        title="cwbench report",
        subtitle=f"{escape(name)}, {now}",
        refresh='<noscript><meta http-equiv="refresh" content="60"></noscript>' if live else "",
        live="yes" if live else "no",
        written=f"{time.time():.0f}",
        style=asset("page.css") + STYLE,
        script="\n".join(map(asset, SCRIPTS)),
        percent=f"{100 * share:.0f}",
        cards=_cards(study),
        navigation=_navigation(parts),
        body="".join(part.html for part in parts),
        footer=_footer(study.options.level),
    )


def _footer(level: float) -> str:
    return (
        f"Made by cwbench at {escape(commit_and_changes())}. "
        f"Brackets are {100 * level:g} % bootstrap intervals over seeds, widened for few seeds; "
        "hovering adds Student t intervals and the plain percentile bootstrap, as published."
    )


def _navigation(parts: Sequence[Part]) -> str:
    """Links to all parts; those of each of several protocols in a line with its name."""
    made = ""
    for protocol, own in groupby(parts, key=lambda part: part.protocol):
        links = "".join(link(part.anchor, part.title) for part in own)
        name = escape(protocol)
        made += f'<div data-protocol="{name}"><b>{name}</b>{links}</div>' if name else links
    return made


def _files(files: Sequence[str]) -> str:
    if not files:
        return ""
    items = "".join(f'<li><a href="{quote(f)}">{escape(f)}</a></li>' for f in files)
    return f"<details><summary>{counted(len(files), 'file')}</summary><ul>{items}</ul></details>"


def _cards(study: Study) -> str:
    runs = {run.name: run for group in study.groups for run in group.runs}.values()
    states = {state: sum(run.state == state for run in runs) for state in ("done", "running")}
    broken = sum(run.state in ("failed", "diverged") for run in runs)
    steps, seconds = steps_and_seconds(study.used)
    said = "problem" if len(study.problems) == 1 else "problems"
    cards = {
        "runs ended": f"{states['done']} / {len(runs)}",
        "running": str(states["running"]),
        "failed or diverged": str(broken),
        "training steps": count_text(steps, "count"),
        "wall time of all segments": count_text(seconds, "seconds"),
        said: str(len(study.problems)),
    }
    alarms = {"failed or diverged": broken, said: len(study.problems)}
    return "".join(
        f'<li class="{"alarm" if alarms.get(name) else ""}"><b>{value}</b><span>{name}</span></li>'
        for name, value in cards.items()
    )


def _protocols(study: Study, tables: Tables, results_href: str | None) -> list[Part]:
    """A part for each protocol; protocols are never mixed."""
    found = []
    several = len(study.protocols) > 1
    for protocol in study.protocols:
        own = [(name, s, table) for name, s, table in tables if s.protocol.key == protocol.key]
        scores = own[0][1] if own else Scores(study, protocol)
        title = study.title(protocol) if several else ""
        parts = {
            "Summary": summary_charts(scores) + _summary(own) + _about(scores),
            "Curves": curves_section(study, protocol),
            "Comparison of methods": comparison_section(scores),
            "Matrices": matrices_section(scores),
            "Tables": _whole_tables(own, "headline"),
            "Details": "".join(
                _fold(name, table) for name, _, table in own if table.section == "details"
            ),
            "Resources": _whole_tables(own, "resources"),
            "Runs": runs_section(scores, results_href),
        }
        found += [Part(name, content, title) for name, content in parts.items()]
    return found


def _fold(name: str, table: Table) -> str:
    """A table behind its first sentence."""
    title = table.caption.split(". ")[0].rstrip(".")
    return (
        f"<details><summary>{escape(title)} <code>{escape(name)}</code></summary>"
        f"{whole_table(table, name)}</details>"
    )


NO_REFERENCE = (
    "none; it is made by fine-tuning on single-TASK, for each task, or by independent, with this "
    "protocol"
)


def _about(scores: Scores) -> str:
    protocol, window = scores.protocol, scores.window
    env = ", ".join(f"{key} {value}" for key, value in protocol.env.items())
    schedule = ", ".join(f"{key} {value}" for key, value in protocol.schedule.items())
    text = f"Protocol {scores.study.title(protocol)}. Environment: {env}. Schedule: {schedule}."
    last = f"means of the last {window}" if window > 1 else "those of the last"
    ends = f"End values are {last} of {protocol.evaluations} evaluations."
    found = find_reference(scores.study, scores.protocol).curves.values()
    sources = sorted({curves.source for curves in found})
    reference = f"Reference of transfer: {'; '.join(sources) or NO_REFERENCE}."
    return f'<p class="note">{escape(f"{text} {ends} {reference}")}</p>'


def _whole_tables(tables: Tables, section: Section) -> str:
    shown = [(name, table) for name, _, table in tables if table.section == section]
    return "".join(whole_table(table, name) for name, table in shown)


def _summary(tables: Tables) -> str:
    """A row per method with its means over each family of sequences."""
    rows: dict[str, dict[int, Cell]] = {}  # method -> column -> cell
    spans: list[tuple[str, int]] = []
    for _, scores, table in tables:
        start = sum(count for _, count in spans)
        if table.name in ("cw3", "cw6", "other"):
            spans.append((scores.title(table.name), len(table.blocks)))
            found = [
                (title, index, cell)
                for index, block in enumerate(table.blocks)
                for title, cell in zip(block.columns, block.rows[-1][1], strict=True)
            ]
        elif table.name == "cw10-cw20":
            [block] = table.blocks
            spans += block.spans
            found = [
                (title, i, cell) for title, cells in block.rows for i, cell in enumerate(cells)
            ]
        else:
            continue
        for title, index, cell in found:
            rows.setdefault(title, {})[start + index] = cell
    return _summary_table(rows, spans) if rows else ""


def _summary_table(rows: dict[str, dict[int, Cell]], spans: list[tuple[str, int]]) -> str:
    columns = tuple(names.METRICS[m].short for m in names.HEADLINE) * len(spans)
    body = tuple(
        (title, tuple(row.get(index, Cell()) for index in range(len(columns))))
        for title, row in rows.items()
    )
    block = Block("", "Method", columns, body, spans=tuple(spans))
    return block_table(block, "Means over sequences")


def _paper(tables: Tables, lint: Sequence[str]) -> str:
    """Published cells next to ours, and which of them are impossible."""
    own = _whole_tables(tables, "published")
    items = "".join(f"<li>{escape(line)}</li>" for line in lint)
    wrong = (
        f"<h3>Impossible among all published numbers</h3><ul class=problems>{items}</ul>"
        if lint
        else ""
    )
    blocks = [b for _, _, table in tables if table.section == "published" for b in table.blocks]
    return f"<p>{escape(overall(blocks))}</p>{own}{wrong}"


def _problems(problems: Sequence[str]) -> str:
    if not problems:
        return "<p>None: every file was read, every number is where it should be.</p>"
    items = "".join(f"<li>{escape(problem)}</li>" for problem in problems)
    return f'<ul class="problems">{items}</ul>'
