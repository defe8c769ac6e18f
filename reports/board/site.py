"""The board: one static page with a row per method, protocol, sequence and contribution.

Pairs of tasks are one row together.
"""

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from string import Template
from urllib.parse import quote

from cwbench.reports.analysis import names
from cwbench.reports.analysis.provenance import counters
from cwbench.reports.analysis.scores import Score, Scores
from cwbench.reports.analysis.study import Group, Study
from cwbench.reports.tables.formats import number
from cwbench.reports.tables.resources import Record, count_text, used_segments
from cwbench.spec.segment import digest
from cwbench.spec.text import counted

BEFORE, AFTER = ("method", "from"), ("seeds", "steps", "hours", "cwbench")  # columns
Section = tuple[str, tuple[str, ...], tuple[tuple[str, ...], ...]]  # protocol, sequences, tasks


@dataclass(frozen=True)
class Entry:
    """One contribution: its name, who made it, and its runs. Its report is at `NAME/index.html`."""

    name: str
    contributor: str
    study: Study


@dataclass(frozen=True)
class Row:
    """One setting of one contribution on one sequence, or on all its pairs of tasks."""

    entry: Entry
    groups: Sequence[Group]
    scores: tuple[Score, ...]

    @property
    def section(self) -> Section:
        """Numbers of different protocols, sequences or tasks are never in one table.

        Contributors may give one name to different sequences or tasks of their own.
        """
        protocol = self.groups[0].protocol
        key = protocol.key
        found = sorted(self.groups, key=lambda group: names.natural(group.sequence))
        if protocol.definitions:
            own = [protocol.definition(task) for group in found for task in group.tasks]
            key = digest([key, own])
        return (
            f"{protocol.full_title} {key[:6]}",
            tuple(group.sequence for group in found),
            tuple(group.tasks for group in found),
        )

    @property
    def tasks(self) -> str:
        if len(self.groups) == 1:
            return ", ".join(self.groups[0].tasks)
        first, second = (dict.fromkeys(group.tasks[i] for group in self.groups) for i in range(2))
        return f"first {', '.join(first)}; second {', '.join(second)}"

    @property
    def records(self) -> list[Record]:
        """What its numbers were made from, experts included."""
        finished = (run for group in self.groups for run in group.finished)
        return used_segments(self.entry.study.segments, finished)


def rows_of(entry: Entry) -> Iterator[Row]:
    for protocol in entry.study.protocols:
        scores = Scores(entry.study, protocol)
        finished = [group for group in entry.study.of(protocol) if group.finished]
        together: dict[tuple[str, str], list[Group]] = {}
        for group in finished:
            what = group.family if group.family == "pairs" else group.sequence
            together.setdefault((group.setup, what), []).append(group)
        for groups in together.values():
            yield Row(
                entry, groups, tuple(scores.score(groups, metric) for metric in names.HEADLINE)
            )


def render(entries: Sequence[Entry]) -> str:
    """The page; best average performance first in every table."""
    sections: dict[Section, list[Row]] = {}
    for entry in entries:
        for row in rows_of(entry):
            sections.setdefault(row.section, []).append(row)
    body = "".join(
        _section(section, sections[section])
        for section in sorted(sections, key=lambda one: (one[0], *_order(one[1]), one[2]))
    )
    contributions = "".join(map(_contribution, entries))
    page = Template((files("cwbench.reports.board") / "board.html").read_text(encoding="utf-8"))
    return page.substitute(body=body or "<p>No results.</p>", contributions=contributions)


def _contribution(entry: Entry) -> str:
    """Its report, who made it, and what a reader must know about its runs."""
    notes = "".join(f"<li>{escape(note)}</li>" for note in entry.study.notes)
    return (
        f'<li id="of-{quote(entry.name)}"><a href="{quote(entry.name)}/index.html">'
        f"{escape(entry.name)}</a>, {escape(entry.contributor)}{notes and f'<ul>{notes}</ul>'}</li>"
    )


def _title(sequences: Sequence[str]) -> str:
    return sequences[0] if len(sequences) == 1 else f"{len(sequences)} pairs of tasks"


def _columns(sequences: Sequence[str]) -> Iterator[str]:
    """Reports on pairs give the forgetting of the first task, twice as much."""
    yield from BEFORE
    for metric in names.HEADLINE:
        both = metric == "forgetting" and names.family(sequences[0]) == "pairs"
        yield names.METRICS[metric].title + " (mean of both tasks)" * both
    yield from AFTER


def _order(sequences: Sequence[str]) -> tuple[int, list[tuple[int, str]]]:
    """Single sequences by name, then sets of pairs, the largest first."""
    return (-len(sequences) if len(sequences) > 1 else -sys.maxsize), names.natural(sequences[0])


def _section(section: Section, rows: Sequence[Row]) -> str:
    protocol, sequences, tasks = section
    title = _title(sequences)
    ordered = sorted(rows, key=lambda row: -row.scores[0].value)
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in _columns(sequences))
    lines = "".join(
        f"<tr>{''.join(f'<td>{cell}</td>' for cell in _cells(row))}</tr>" for row in ordered
    )
    place = f"{title}-{digest([sequences, tasks])[:6]}"
    anchor = quote(f"{protocol}-{place}".replace(" ", "-"))
    return (
        f'<section id="{anchor}"><h2>{escape(title)} <small>{escape(protocol)}</small></h2>'
        f"<p>{escape(rows[0].tasks)}</p><div class=wide><table><thead><tr>{head}</tr></thead>"
        f"<tbody>{lines}</tbody></table></div></section>"
    )


def _cells(row: Row) -> Iterator[str]:
    yield escape(row.groups[0].title)
    name, notes = quote(row.entry.name), counted(len(row.entry.study.notes), "note")
    link = f'<a href="{name}/index.html">{escape(row.entry.contributor)}</a>'
    yield (
        f'{link} <a href="#of-{name}"><small>{notes}</small></a>' if row.entry.study.notes else link
    )
    for score in row.scores:
        yield _score(score)
    yield str(min(len(group.finished) for group in row.groups))
    statuses = [record["status"] for record in row.records]
    yield count_text(sum(counters(status).get("train_steps", 0) for status in statuses), "count")
    yield f"{sum(status.get('seconds', 0) for status in statuses) / 3600:.2f}"
    yield escape(_versions(row.records))


def _score(score: Score) -> str:
    value = score.estimate
    if value.value != value.value:  # NaN
        return f'<span title="{escape(score.why)}">-</span>'
    if value.low != value.low:
        return number(value.value)
    ends = f"[{number(value.low)}, {number(value.high)}]"
    return f"{number(value.value)} <small>{ends}</small>"


def _versions(records: Iterable[Record]) -> str:
    """Each version of cwbench with its commits: `0.2.0 3932af30e7eb, 54ae6f7c1d43`."""
    commits: dict[str, set[str]] = {}
    for record in records:
        versions = record.get("versions") or {}
        commits.setdefault(versions.get("cwbench", "?"), set()).add(versions.get("commit", ""))
    texts = (f"{version} {', '.join(sorted(found))}" for version, found in sorted(commits.items()))
    return "; ".join(text.strip() for text in texts)
