"""The board: one static page with a row per method, protocol, sequence and contribution."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from string import Template
from urllib.parse import quote

from cwbench.reports.analysis import names
from cwbench.reports.analysis.scores import Score, Scores
from cwbench.reports.analysis.study import Group, Study

METRICS = ("average_performance", "forgetting", "forward_transfer")
COLUMNS = (
    "method",
    *(names.METRICS[metric].title for metric in METRICS),
    "seeds",
    "steps",
    "hours",
    "cwbench",
    "from",
)


@dataclass(frozen=True)
class Entry:
    """One contribution: its name, who made it, and its runs. Its report is at `NAME/index.html`."""

    name: str
    contributor: str
    study: Study


@dataclass(frozen=True)
class Row:
    """One setting of one contribution on one sequence."""

    entry: Entry
    group: Group
    scores: tuple[Score, ...]

    @property
    def section(self) -> tuple[str, str]:
        """Numbers of different protocols are never in one table."""
        protocol = self.group.protocol
        return f"{protocol.name} {protocol.key[:6]}", self.group.sequence

    @property
    def records(self) -> list[dict[str, object]]:
        ids = {key for run in self.group.finished for key in run.segments}
        return [self.entry.study.segments[key] for key in sorted(ids)]


def rows_of(entry: Entry) -> Iterator[Row]:
    for protocol in entry.study.protocols:
        scores = Scores(entry.study, protocol)
        for group in entry.study.of(protocol):
            if group.finished:
                found = tuple(scores.score([group], metric) for metric in METRICS)
                yield Row(entry, group, found)


def render(entries: Sequence[Entry]) -> str:
    """The page; best average performance first in every table."""
    sections: dict[tuple[str, str], list[Row]] = {}
    for entry in entries:
        for row in rows_of(entry):
            sections.setdefault(row.section, []).append(row)
    body = "".join(
        _section(protocol, sequence, sections[protocol, sequence])
        for protocol, sequence in sorted(sections, key=lambda key: (key[0], names.natural(key[1])))
    )
    contributions = "".join(
        f'<li><a href="{quote(entry.name)}/index.html">{escape(entry.name)}</a>, '
        f"{escape(entry.contributor)}</li>"
        for entry in entries
    )
    page = Template((files("cwbench.reports.board") / "board.html").read_text(encoding="utf-8"))
    return page.substitute(body=body or "<p>No results.</p>", contributions=contributions)


def _section(protocol: str, sequence: str, rows: Sequence[Row]) -> str:
    ordered = sorted(rows, key=lambda row: -row.scores[0].value)
    tasks = ", ".join(rows[0].group.tasks)
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in COLUMNS)
    lines = "".join(
        f"<tr>{''.join(f'<td>{cell}</td>' for cell in _cells(row))}</tr>" for row in ordered
    )
    anchor = quote(f"{protocol}-{sequence}".replace(" ", "-"))
    return (
        f'<section id="{anchor}"><h2>{escape(sequence)} <small>{escape(protocol)}</small></h2>'
        f"<p>{escape(tasks)}</p><div class=wide><table><thead><tr>{head}</tr></thead>"
        f"<tbody>{lines}</tbody></table></div></section>"
    )


def _cells(row: Row) -> Iterator[str]:
    yield escape(row.group.title)
    for score in row.scores:
        yield _score(score)
    yield str(len(row.group.finished))
    steps = sum(int(_resource(record, "train_steps")) for record in row.records)
    yield f"{steps / 1e6:.1f} M"
    yield f"{sum(_seconds(record) for record in row.records) / 3600:.2f}"
    yield escape(", ".join(sorted({_commit(record) for record in row.records})))
    yield f'<a href="{quote(row.entry.name)}/index.html">{escape(row.entry.contributor)}</a>'


def _score(score: Score) -> str:
    value = score.estimate
    if value.value != value.value:  # NaN
        return f'<span title="{escape(score.why)}">-</span>'
    if value.low != value.low:
        return f"{value.value:.2f}"
    return f"{value.value:.2f} <small>[{value.low:.2f}, {value.high:.2f}]</small>"


def _resource(record: dict[str, object], name: str) -> float:
    status = record["status"]
    assert isinstance(status, dict)
    return float(status.get("resources", {}).get(name, 0))


def _seconds(record: dict[str, object]) -> float:
    status = record["status"]
    assert isinstance(status, dict)
    return float(status.get("seconds", 0))


def _commit(record: dict[str, object]) -> str:
    versions = record.get("versions", {})
    assert isinstance(versions, dict)
    return f"{versions.get('cwbench', '?')} {versions.get('commit', '')}".strip()
