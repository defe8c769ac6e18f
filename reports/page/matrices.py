"""Matrices on the page: pairs of tasks, and success on every task after each."""

from collections.abc import Sequence
from html import escape

import numpy as np
from numpy.typing import NDArray

from cwbench.reports.analysis import metrics, names
from cwbench.reports.analysis.pairs import QUANTITIES, PairMatrices, by_matrix, matrices, per_run
from cwbench.reports.analysis.scores import Scores
from cwbench.reports.analysis.study import Group
from cwbench.reports.page.tables import link
from cwbench.reports.tables import comparisons
from cwbench.reports.tables.formats import number, signed
from cwbench.spec.text import counted

Array = NDArray[np.float64]


def matrices_section(scores: Scores) -> str:
    return _pairs(scores) + _all_after_each(scores)


def _grid(caption: str, rows: Sequence[str], columns: Sequence[str], cells: Sequence[str]) -> str:
    """A matrix with named rows and columns; `cells` row by row."""
    head = "".join(f"<th scope=col><span>{escape(name)}</span></th>" for name in columns)
    lines = [
        f"<tr><th scope=row>{escape(name)}</th>"
        + "".join(cells[i * len(columns) : (i + 1) * len(columns)])
        + "</tr>"
        for i, name in enumerate(rows)
    ]
    return (
        f'<figure class="matrix"><figcaption>{caption}</figcaption><table><thead><tr><th></th>'
        f"{head}</tr></thead><tbody>{''.join(lines)}</tbody></table></figure>"
    )


def _shaded(bad: float, body: str, tip: str = "") -> str:
    """A cell that is the darker the worse its value is."""
    shade = float(np.clip(bad, 0, 1))
    title = f' title="{tip}"' if tip else ""
    return (
        f'<td class="v{" dark" * (shade > 0.5)}" style="--x:{100 * shade:.0f}%"{title}>{body}</td>'
    )


# Pairs ----------------------------------------------------------------------------------------


def _pairs(scores: Scores) -> str:
    parts = []
    for groups in by_matrix(scores.groups("pairs")).values():
        found = matrices(scores, groups)
        counts = "; ".join(f"{name}: {count}" for name, count in found.counts().items())
        images = "".join(pair_figure(found, name, scores.window) for name in QUANTITIES)
        head = f"{found.title}, pairs of tasks{f' of {found.of}' if found.of else ''}"
        parts.append(
            f'<div data-method="{escape(found.title)}"><h3>{escape(head)}'
            "</h3><p class=note>Rows: first task; columns: second task. "
            f"Redder is worse. {found.pairs} pairs ended; {escape(counts)}.</p>"
            f'<div class="matrices">{images}</div></div>'
        )
    return "".join(parts)


def pair_figure(found: PairMatrices, name: str, window: int) -> str:
    """One matrix of the tasks that occur; hovering names the pair, a click leads to its seeds."""
    average = found.averages[name]
    head = f"average {number(average.value)}" if not np.isnan(average.value) else average.why
    rows, columns = found.firsts, found.seconds
    cells = [_pair_cell(found, name, (row, column), window) for row in rows for column in columns]
    caption = f"<b>{escape(QUANTITIES[name])}</b>, {escape(head)}"
    return _grid(caption, list(rows.values()), list(columns.values()), cells)


def _pair_cell(found: PairMatrices, name: str, index: tuple[int, int], window: int) -> str:
    pair = escape(f"{found.firsts[index[0]]} → {found.seconds[index[1]]}")
    group = found.groups.get(index)
    if group is None:
        return f'<td class="part" style="--p:0%" title="{pair}\nnot asked for"></td>'
    value = found.values[name][index]
    if np.isnan(value):
        share = f"{100 * group.progress:.0f} %"
        body = link(f"g-{group.key}", share)
        return f'<td class="part" style="--p:{share}" title="{pair}\n{share} done">{body}</td>'
    seeds = ", ".join(number(v) for v in per_run(group, window)[name] if not np.isnan(v))
    bad = value / 0.3 if name == "forgetting" else 1 - value
    tip = f"{pair}\n{number(value)}; seeds: {seeds}"
    return _shaded(bad, link(f"g-{group.key}", number(value)), tip)


# Methods against each other -------------------------------------------------------------------


def differences(scores: Scores, family: str) -> str:
    """Average performance of every two methods, row minus column, with Holm's p value."""
    pairs = comparisons.pairs(scores, family, "average_performance")
    found: dict[tuple[str, str], str] = {}
    for pair, p_value in zip(pairs, comparisons.adjusted(pairs), strict=True):
        value, seeds = float(pair.differences.mean()), counted(len(pair.differences), "seed")
        tip = f"p (Holm) {comparisons.p_text(p_value, 4)}; {seeds}"
        found[pair.second, pair.first] = _difference(value, p_value, tip)
        found[pair.first, pair.second] = _difference(-value, p_value, tip)
    if not found:
        every = comparisons.every_pair(scores, family, "average_performance")
        return f'<p class="note">No differences: {comparisons.NO_SEED}.</p>' if every else ""
    titles = list(dict.fromkeys(name for pair in pairs for name in (pair.first, pair.second)))
    cells = [found.get((row, column), "<td></td>") for row in titles for column in titles]
    caption = (
        "<b>Differences in average performance</b>, row minus column, over the seeds that both "
        "have; below: p value of the sign-flip test, adjusted for the number of pairs (Holm), a "
        "dash after one seed. Redder is worse."
    )
    grid = _grid(caption, titles, titles, cells).replace('"matrix"', '"matrix wide"', 1)
    return f'<div class="matrices">{grid}</div>'


def _difference(value: float, p_value: float, tip: str) -> str:
    text = f"{signed(value)}<br><small>p {comparisons.p_text(p_value)}</small>"
    return _shaded(-value, text, tip)


# All tasks after each -------------------------------------------------------------------------


def _all_after_each(scores: Scores) -> str:
    """Trained up to a task (row), tested on a task (column): a fold per sequence."""
    families = scores.families
    settings = [(s, g) for f in families for s in scores.settings(f) for g in s.groups]
    sequences = list(dict.fromkeys(group.sequence for _, group in settings))
    parts = []
    for sequence in sequences:
        own = [(s.title, group) for s, group in settings if group.sequence == sequence]
        images = "".join(_after_each(scores, title, group) for title, group in own)
        if images:
            title = escape(names.sequence_title(sequence))
            parts.append(
                f'<details data-sequence="{title}" {"open" * (len(sequences) == 1)}><summary>'
                f'{title}</summary><div class="matrices">{images}</div></details>'
            )
    if not parts:
        return ""
    note = "Rows: trained up to this task; columns: tested on this task. Redder is worse."
    return f"<h3>Success after each task</h3><p class=note>{note}</p>{''.join(parts)}"


def _after_each(scores: Scores, title: str, group: Group) -> str:
    end = metrics.end_values(group.latest, scores.window)  # [R, N, N]
    known = np.asarray(~np.isnan(end).all(0))
    if group.joint or not known.any():
        return ""
    with np.errstate(invalid="ignore"):
        means = np.nansum(end, 0) / (~np.isnan(end)).sum(0)
    cells = [
        _shaded(1 - value, number(value)) if known[row, column] else "<td></td>"
        for (row, column), value in np.ndenumerate(means)
    ]
    figure = _grid(f"<b>{escape(title)}</b>", group.tasks, group.tasks, cells)
    return figure.replace('class="matrix"', f'class="matrix" data-method="{escape(title)}"', 1)
