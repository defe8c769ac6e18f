"""Which columns and rows of a LaTeX table go on one page."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise

from cwbench.reports.tables.model import Block, Cell

PAGE_LINES = 45  # of a table, headings and rules included
PAGE_WIDTH = 500  # pt; a page of 6.9 in
SHRUNK = 0.7  # of 10 pt: letters without intervals, which are scriptsize, may shrink to that
SCRIPTSIZE = r"\scriptsize"

Write = Callable[[Cell], str]


def paged(blocks: Sequence[Block], write: Write, gap: float) -> list[list[Block]]:
    """The blocks of each page; `write` gives a cell's LaTeX, `gap` is between columns, in pt."""
    pages: list[list[Block]] = []
    for start, end in _column_ranges(blocks, write, gap):
        parts = [_columns(block, start, end) for block in blocks if len(block.columns) > start]
        pages += _row_pages(parts, write)
    return pages


def _even(count: int, parts: int) -> list[tuple[int, int]]:
    """First and one after the last of each part."""
    return [*pairwise(count * part // parts for part in range(parts + 1))]


# Columns -------------------------------------------------------------------------------------


def _column_ranges(blocks: Sequence[Block], write: Write, gap: float) -> list[tuple[int, int]]:
    """Which columns are on each page: equally many on as few pages as fit.

    All blocks are set in one tabular, so the widest text of any decides how wide a column is.
    """
    texts = [
        line
        for block in blocks
        for line in (
            [block.corner, *block.columns],
            *([name, *map(write, cells)] for name, cells in block.rows),
        )
    ]
    total = max(map(len, texts))
    names, *widths = (
        gap + max(_width(line[column]) for line in texts if column < len(line))
        for column in range(total)
    )
    unshrinkable = any(SCRIPTSIZE in text for line in texts for text in line)
    limit = PAGE_WIDTH if unshrinkable else PAGE_WIDTH / SHRUNK
    room = limit - min(names, limit / 2)  # longer names shrink a page: they could fill it alone
    for pages in range(1, total):
        ranges = _even(len(widths), pages)
        if all(sum(widths[start:end]) <= room for start, end in ranges):
            break
    return ranges


def _width(text: str) -> float:
    """About how wide a cell is, in pt: 4.6 for a letter of 10 pt, 3.2 in scriptsize."""

    def letters(part: str) -> int:
        return len(re.sub(r"\\[a-z]+|[\\${}]", "", part))

    parts = (line.partition(SCRIPTSIZE) for line in text.split(r"\\"))
    return max(4.6 * letters(usual) + 3.2 * letters(small) for usual, _, small in parts)


def _columns(block: Block, start: int, end: int) -> Block:
    edges = pairwise(accumulate((count for _, count in block.spans), initial=0))
    spans = [
        (title, min(b, end) - max(a, start))
        for (title, _), (a, b) in zip(block.spans, edges, strict=True)
    ]
    return replace(
        block,
        columns=block.columns[start:end],
        rows=tuple((name, cells[start:end]) for name, cells in block.rows),
        spans=tuple((title, count) for title, count in spans if count > 0),
    )


# Rows ----------------------------------------------------------------------------------------


def _row_pages(blocks: Sequence[Block], write: Write) -> list[list[Block]]:
    """A block starts a new page unless all of it fits below the one before."""
    pages: list[list[Block]] = []
    left = 0  # lines on the last page
    for block in blocks:
        for part in _parts(block, write):
            lines = _header(part) + sum(_height(row, write) for row in part.rows)
            if lines < left:
                pages[-1].append(part)
                left -= lines + 1  # and a rule
            else:
                pages.append([part])
                left = PAGE_LINES - lines
    return pages


def _parts(block: Block, write: Write) -> list[Block]:
    """A block that is longer than a page, in parts of equally many rows."""
    highest = max((_height(row, write) for row in block.rows), default=1)
    fitting = (PAGE_LINES - _header(block)) // highest
    count = -(-len(block.rows) // fitting)
    ranges = _even(len(block.rows), max(1, count))
    return [
        replace(block, rows=block.rows[start:end], mean=block.mean and end == len(block.rows))
        for start, end in ranges
    ]


def _header(block: Block) -> int:
    """Lines of titles and rules."""
    return 2 + bool(block.title) + 2 * bool(block.spans) + block.mean


def _height(row: tuple[str, tuple[Cell, ...]], write: Write) -> int:
    return 1 + max((write(cell).count(r"\\") for cell in row[1]), default=0)
