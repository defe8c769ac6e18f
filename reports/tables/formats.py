"""Tables as LaTeX, Markdown and CSV."""

import csv
import io
import math
import re
from collections.abc import Callable, Sequence
from functools import partial
from itertools import accumulate, pairwise

import numpy as np

from cwbench.reports.analysis.intervals import INTERVALS
from cwbench.reports.tables.model import DASH, Block, Cell, Table
from cwbench.reports.tables.pages import paged

_TEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "[": "{[}",  # a bracket at the start of a row would be an argument of the line break before
    **{sign: "\\" + sign for sign in "&%$#_{}"},
    **{
        sign: rf"\ensuremath{{\{name}}}"
        for sign, name in zip(
            "αβγδεζηθικλμνξπρστυφχψωΓΔΘΛΞΠΣΥΦΨΩ",
            "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma "
            "tau upsilon phi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi "
            "Omega".split(),
            strict=True,
        )
    },
}
ROUNDING = 1e-12  # smaller numbers are what rounding leaves of zero, another on each processor
# Characters that pdflatex knows without other fonts (OT1): most of those below, and a few others.
LATIN, UNKNOWN = 0x180, "«»ÐÞðþĄąĐđĘęĦħĮįĸĿŀŉŊŋŦŧŲųſ"


def tex(text: str) -> str:
    """Any text as LaTeX; a character that pdflatex does not know by its number."""
    return "".join(_TEX.get(sign) or _known_or_code(sign) for sign in text)


def _known_or_code(sign: str) -> str:
    known = sign in "–—…→" or (ord(sign) < LATIN and sign not in UNKNOWN)
    return sign if known else f"(U+{ord(sign):04X})"


def number(value: float, decimals: int = 2) -> str:
    """Two decimals, as in the paper; minus zero is zero.

    Rates have few digits: 0.695 is 0.70, even if the last bit makes it 0.6949999.
    """
    text = f"{value + math.copysign(1e-9, value):.{decimals}f}"
    return text if text.strip("-0.") else text.lstrip("-")


def quantity(value: float) -> str:
    """A number of any size: 4.22e9 and 1.25e-3 have three digits, others two decimals."""
    if 1e-12 < abs(value) < 0.005 or abs(value) >= 10_000:  # differences of equals are below
        return re.sub(r"e\+?(-?)0*", r"e\1", f"{value:.2e}")
    return number(value)


def shown(cell: Cell, value: float) -> str:
    """A cell's value, or an end of its interval."""
    return quantity(value) if cell.any_size else number(value)


def signed(value: float) -> str:
    """A difference: a number with its sign, zero without."""
    text = number(value)
    return f"+{text}" if float(text) > 0 else text


def ends(cell: Cell, interval: str) -> tuple[float, float]:
    assert cell.score
    return cell.score.estimate.ends(interval)


def mark(cell: Cell) -> str:
    """The seeds behind a number where some are missing."""
    return f"{cell.seeds}/{cell.asked}" if cell.seeds < cell.asked else ""


POINTS_PER_MM = 2.845
NARROW = 3  # columns of numbers that fit one column of a two-column page

# LaTeX ---------------------------------------------------------------------------------------


def latex_cell(cell: Cell, interval: str) -> str:
    if cell.text:
        return _latex_text(cell.text)
    if cell.empty:
        return "--"
    value = f"${_latex_number(shown(cell, cell.value))}$"
    text = rf"\bm{{{value}}}" if interval in cell.bold else value
    low, high = ends(cell, interval)
    if not np.isnan(low):
        text += rf" \scriptsize[{shown(cell, low)}, {shown(cell, high)}]"
    return text + (rf"\,$^{{{mark(cell)}}}$" if mark(cell) else "")


def _latex_number(text: str) -> str:
    """In a formula: an upright e, and no spaces around the sign of its exponent."""
    return re.sub(r"e(.+)", r"\\mathrm{e}{\1}", text)


def _latex_text(text: str) -> str:
    """`0.30 / 0.33 [0.31, 0.37] agrees` in two lines: six such columns fit a page."""
    numbers, bracket, verdict = text.rpartition("] ")
    if not bracket:
        return tex(text)
    return rf"\shortstack{{{tex(numbers)}]\\{tex(verdict)}}}"


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        " & ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def latex_block(block: Block, interval: str) -> list[str]:
    header = [tex(name) for name in (block.corner, *block.columns)]
    rows = [[tex(name), *(latex_cell(c, interval) for c in cells)] for name, cells in block.rows]
    first, *lines = _aligned([header, *rows])
    out = []
    if block.title:
        width = len(block.columns) + 1
        out.append(rf"\multicolumn{{{width}}}{{c}}{{\textbf{{{tex(block.title)}}}}} \\[0.5mm]")
    if block.spans:
        out += _latex_spans(block)
    out += [first + r" \\", r"\midrule"]
    for index, line in enumerate(lines):
        if block.mean and index == len(lines) - 1:
            out.append(r"\midrule")
        out.append(line + r" \\")
    return out


def _latex_spans(block: Block) -> list[str]:
    """Titles over groups of columns, with a rule below each."""
    ends = list(accumulate((count for _, count in block.spans), initial=1))
    titles = [
        rf"\multicolumn{{{count}}}{{c}}{{\textbf{{{tex(title)}}}}}" for title, count in block.spans
    ]
    rules = [rf"\cmidrule(lr){{{a + 1}-{b}}}" for a, b in pairwise(ends)]
    return [" & ".join(["", *titles]).lstrip() + r" \\", "".join(rules)]


def latex(table: Table, interval: str = INTERVALS[0]) -> str:
    """The paper's layout: blocks stacked in one tabular, intervals in scriptsize.

    Wide tables span both columns of a two-column page (`table*`, which is `table` on others).
    """
    widest = max(len(block.columns) for block in table.blocks)
    environment = "table*" if widest > NARROW else "table"
    narrow = all(cell.score for block in table.blocks for _, row in block.rows for cell in row)
    usual = interval == INTERVALS[0]
    note = "" if usual else f" Intervals: {interval}."
    said = [
        rf"\caption{{{tex(table.caption)}{note}}}",
        rf"\label{{table:{table.file}{'' if usual else f'-{interval}'}}}",
    ]
    again = [r"\addtocounter{table}{-1}", r"\caption{(continued)}"]
    footer = tex(footer_text(table, interval))
    gap = 0.5 if narrow else 1.5  # mm on each side of a column
    pages = paged(table.blocks, partial(latex_cell, interval=interval), 2 * gap * POINTS_PER_MM)
    return "\n".join(
        _latex_page(environment, again if page else said, blocks, interval, gap, footer)
        for page, blocks in enumerate(pages)
    )


def _latex_page(
    environment: str,
    head: Sequence[str],
    blocks: Sequence[Block],
    interval: str,
    gap: float,
    footer: str,
) -> str:
    """A float with a table, or with the part of one that fits on a page."""
    widest = max(len(block.columns) for block in blocks)
    first, *others = (latex_block(block, interval) for block in blocks)
    return "\n".join(
        [
            rf"\begin{{{environment}}}[!htp]",
            r"\setlength{\belowcaptionskip}{8pt}",
            *head,
            r"\centering",
            rf"\setlength{{\tabcolsep}}{{{gap}mm}}",
            r"\renewcommand\arraystretch{1.03}",
            r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
            rf"\begin{{tabular}}{{l{'c' * widest}}}",
            r"\toprule",
            *first,
            *(line for lines in others for line in (r"\midrule[\heavyrulewidth]", *lines)),
            r"\bottomrule",
            r"\end{tabular}}",
            r"\par\vspace{1mm}",
            rf"{{\scriptsize {footer}\par}}",
            rf"\end{{{environment}}}",
            "",
        ]
    )


# Markdown ------------------------------------------------------------------------------------


def plain(text: str) -> str:
    """Any text as a Markdown cell: no column breaks, no HTML."""
    text = " ".join(text.splitlines())
    return text.replace("&", "&amp;").replace("<", "&lt;").replace("|", r"\|")


def markdown_cell(cell: Cell, interval: str) -> str:
    if cell.text:
        return plain(cell.text)
    if cell.empty:
        return f"({plain(cell.why)})" if cell.why else ""
    value = shown(cell, cell.value)
    value = f"**{value}**" if interval in cell.bold else value
    low, high = ends(cell, interval)
    text = value if np.isnan(low) else f"{value} [{shown(cell, low)}, {shown(cell, high)}]"
    return f"{text} ({mark(cell)} seeds)" if mark(cell) else text


def markdown(table: Table, interval: str = INTERVALS[0]) -> str:
    caption = table.caption.replace(DASH, "Parentheses say why no number exists")
    out = [f"**{plain(caption)}**", ""]
    for block in table.blocks:
        out += [f"*{plain(block.title)}*", ""] if block.title else []
        out.append(" | ".join(["", block.corner, *map(plain, block.full_columns), ""]).strip())
        out.append("|" + " - |" * (len(block.columns) + 1))
        for name, cells in block.rows:
            texts = [markdown_cell(cell, interval) for cell in cells]
            out.append(" | ".join(["", plain(name), *texts, ""]).strip())
        out.append("")
    return "\n".join([*out, plain(footer_text(table, interval)), ""])


# CSV -----------------------------------------------------------------------------------------

CSV_COLUMNS = (
    "block",
    "row",
    "column",
    "value",
    "low",
    "high",
    "t_low",
    "t_high",
    "percentile_low",
    "percentile_high",
    "seeds",
    "asked",
    "bold",
    "note",
)


def inert(text: str) -> str:
    """A name in one line that a spreadsheet does not take for a formula; numbers stay.

    So do `published / ours [low, high] verdict`: they have no sign that a formula needs.
    """
    text = " ".join(text.split())
    if re.fullmatch(r"-[\d.]+ / [-\d., \[\]a-z]+", text):
        return text
    try:
        float(text)
    except ValueError:
        return f"'{text}" if text.startswith(("=", "+", "-", "@")) else text
    return text


def csv_text(table: Table, interval: str = INTERVALS[0]) -> str:
    """One line per cell, with all intervals and six digits; bold as in the table it goes with."""

    def digits(value: float) -> str:
        if abs(value) < ROUNDING:
            return "0"
        return "" if np.isnan(value) else f"{value:.6g}"

    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    for block in table.blocks:
        for name, cells in block.rows:
            for column, cell in zip(block.full_columns, cells, strict=True):
                labels = [*map(inert, (block.title, name, column))]
                if cell.score is None:
                    writer.writerow([*labels, inert(cell.text), *[""] * (len(CSV_COLUMNS) - 4)])
                    continue
                got = cell.score.estimate
                numbers = [got.value, *(end for kind in INTERVALS for end in got.ends(kind))]
                counts = [cell.seeds, cell.asked, int(interval in cell.bold)]
                writer.writerow([*labels, *map(digits, numbers), *counts, inert(cell.why)])
    return stream.getvalue() + f"# {' '.join(footer_text(table, interval).splitlines())}\n"


def footer_text(table: Table, interval: str) -> str:
    kinds = {
        "bootstrap": "bootstrap over seeds, widened for few seeds",
        "t": "Student t over seeds (jackknife error)",
        "percentile": "percentile bootstrap over seeds, as published",
    }
    text = f"intervals: {table.brackets or f'{100 * table.level:g} % {kinds[interval]}'}"
    return "; ".join([*table.footer.values(), text]) + "."


FORMATS: dict[str, tuple[Callable[[Table, str], str], str]] = {
    "latex": (latex, ".tex"),
    "markdown": (markdown, ".md"),
    "csv": (csv_text, ".csv"),
}
