"""Tables of the page. Every text passes through `escape`; `link` quotes for URLs."""

import re
from html import escape
from urllib.parse import quote

import numpy as np

from cwbench.reports.analysis.intervals import INTERVALS
from cwbench.reports.tables.formats import latex, mark, shown
from cwbench.reports.tables.model import Block, Cell, Table

NO_BREAK = "\N{NO-BREAK SPACE}"


def link(key: str, text: str) -> str:
    """A link to an anchor of the page."""
    return f'<a href="#{quote(key)}">{escape(text)}</a>'


def runs_anchor(keys: tuple[str, ...]) -> str:
    """Where a number's runs are shown: the seeds of one sequence, or the setting with all."""
    return f"g-{keys[0]}" if len(keys) == 1 else f"s-{keys[0].rsplit('-', 1)[1]}"


def cell_tip(cell: Cell) -> str:
    """What hovering over a number says."""
    if cell.score is None:
        return ""
    ends = {kind: cell.score.estimate.ends(kind) for kind in INTERVALS}
    lines = [
        f"{kind}: {shown(cell, low)} to {shown(cell, high)}"
        for kind, (low, high) in ends.items()
        if not np.isnan(low)
    ]
    seeds = f"{cell.seeds} of {cell.asked} seeds" if cell.asked else f"{cell.seeds} seeds"
    return "\n".join([*lines, seeds, *([cell.why] if cell.why else [])])


def table_cell(cell: Cell) -> str:
    unfinished = cell.progress < 1 and bool(cell.keys)
    classes = (
        ["best"] * (INTERVALS[0] in cell.bold) + ["part"] * unfinished + ["text"] * bool(cell.text)
    )
    style = f' style="--p:{100 * cell.progress:.0f}%"' if unfinished else ""
    tip = f' title="{escape(cell_tip(cell))}"' if cell.score else ""
    amount = cell.amount if cell.text else cell.value
    written = "Infinity" if np.isinf(amount) else f"{amount:.6g}"  # as JavaScript reads it
    value = "" if np.isnan(amount) else f' data-v="{written}"'
    body = _linked(cell, _shown(cell, unfinished)) + _interval(cell)
    return f'<td class="{" ".join(classes)}"{style}{tip}{value}>{body}</td>'


def _shown(cell: Cell, unfinished: bool) -> str:
    if cell.text or not cell.empty:
        return _unbroken(cell.text) or shown(cell, cell.value)
    return f"{100 * cell.progress:.0f} %" if unfinished else "–"


def _unbroken(text: str) -> str:
    """No line ends inside an interval or a quotient."""
    return re.sub(r"\[[^\]]*\]", lambda found: found[0].replace(" ", NO_BREAK), text).replace(
        " / ", f"{NO_BREAK}/{NO_BREAK}"
    )


def _linked(cell: Cell, text: str) -> str:
    if cell.keys:
        return link(runs_anchor(cell.keys), text)
    empty = cell.empty and not cell.text
    return f'<span class="none">{text}</span>' if empty else escape(text)


def _interval(cell: Cell) -> str:
    """Interval and count of seeds, after a number."""
    if cell.text or cell.empty or cell.score is None:
        return ""
    low, high = cell.score.estimate.ends()
    interval = "" if np.isnan(low) else f" <small>[{shown(cell, low)}, {shown(cell, high)}]</small>"
    return interval + (f" <small>{mark(cell)}</small>" if mark(cell) else "")


def block_table(block: Block, label: str) -> str:
    """A table that sorts; `label` is its name for screen readers."""
    rows = [
        f"<tr><th scope=row>{escape(name)}</th>{''.join(map(table_cell, cells))}</tr>"
        for name, cells in block.rows
    ]
    foot = f"<tfoot>{rows.pop()}</tfoot>" if block.mean else ""
    spans = "".join(
        f'<th class="group" scope=colgroup colspan="{count}">{escape(title)}</th>'
        for title, count in block.spans
    )
    above = f"<tr><td></td>{spans}</tr>" if spans else ""
    titles = "".join(f"<th scope=col>{escape(name)}</th>" for name in block.columns)
    return (
        f'<div class="scroll"><table class="sortable" aria-label="{escape(label)}"><thead>{above}'
        f"<tr><th scope=col>{escape(block.corner)}</th>{titles}</tr></thead>"
        f"<tbody>{''.join(rows)}</tbody>{foot}</table></div>"
    )


def reasons(block: Block) -> str:
    """Why cells are empty, each reason once; unfinished runs already show progress."""
    cells = [cell for _, row in block.rows for cell in row]
    found = dict.fromkeys(cell.why for cell in cells if cell.empty and cell.why)
    return f'<p class="note">– : {escape("; ".join(found))}</p>' if found else ""


def whole_table(table: Table, anchor: str) -> str:
    """All blocks of a table with its caption and footer."""
    blocks = "".join(
        (f'<h3 class="part">{escape(block.title)}</h3>' if block.title else "")
        + block_table(block, f"{anchor}: {block.title}" if block.title else anchor)
        + reasons(block)
        for block in table.blocks
        if block.rows
    )
    source = f'<template class="latex">{escape(latex(table))}</template>'
    return (
        f'<div id="{escape(anchor)}">{source}<p class="note">{escape(table.caption)}</p>{blocks}'
        f'<p class="note">{escape("; ".join(table.footer.values()))}.</p></div>'
    )
