"""The curves of a study: success, logged statistics and plasticity diagnostics."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from html import escape

import numpy as np
from numpy.typing import NDArray

from cwbench.reports.analysis import metrics, names, plasticity
from cwbench.reports.analysis.bands import (
    BANDS,
    average_runs,
    current_runs,
    logged_runs,
    seed_curve,
    smoothing,
)
from cwbench.reports.analysis.scales import by_scale
from cwbench.reports.analysis.setups import Setting, all_settings, main_settings
from cwbench.reports.analysis.study import Group, Options, Protocol, Study
from cwbench.reports.page.plots import (
    SLOTS,
    Axes,
    Line,
    Range,
    classes,
    extent,
    line_plot,
    span,
    thin,
)
from cwbench.reports.page.plots import STYLE as PLOT_STYLE

Array = NDArray[np.float64]
FAMILIES = (*names.SEQUENCES, "single")
KINDS = {
    "average": "average success",
    "tasks": "per task",
    "current": "training success",
    **{name.replace("_", "-"): title for name, title in names.STATISTICS.items()},
    **{name.replace("_", "-"): one.title for name, one in plasticity.QUANTITIES.items()},
}
# The choice of what is drawn needs no script.
STYLE = PLOT_STYLE + "".join(
    f".curves:has(.k-{kind}:checked) .kind.{kind} {{ display: block; }}\n" for kind in KINDS
)
POINTS = 45_000  # of all lines together: about 1.2 MB
FEWEST, MOST = 40, 400  # of one line
FIRST = ("average", "tasks")  # kinds that get their points before others

Course = tuple[int, str, Group]  # index in the palette, title, runs


@dataclass(frozen=True)
class Look:
    """How curves are drawn on this page."""

    options: Options
    points: int  # of one line
    others: int  # of one line of a kind that is not FIRST

    def of(self, kind: str) -> "Look":
        return self if kind in FIRST else replace(self, points=self.others)


def curves_section(study: Study, protocol: Protocol) -> str:
    """Charts of every sequence but the pairs, family by family."""
    look = Look(study.options, *points_of_a_line(study))
    parts = []
    for family in FAMILIES:
        groups = study.of(protocol, family)
        if not groups:
            continue
        title = study.family_title(protocol, family)
        parts.append(_family(main_settings(groups), f"{protocol.key}-{family}", title, look))
        for method in dict.fromkeys(group.method for group in groups):
            settings = all_settings([group for group in groups if group.method == method])
            if len(settings) > 1:
                key = f"{protocol.key}-{family}-{method}"
                about = f"{title}, settings of {names.label_title(method, method)}"
                parts.append(_family(settings, key, about, look))
    return _about(protocol, study.options) + "".join(parts) if parts else ""


def _about(protocol: Protocol, options: Options) -> str:
    count = smoothing(protocol.evaluations)
    smooth = f", trailing means of {count} evaluations within a task" if count > 1 else ""
    bands = BANDS[options.band].format(level=100 * options.level)
    return f'<p class="note">Means over seeds against environment steps{smooth}. {bands}</p>'


def points_of_a_line(study: Study) -> tuple[int, int]:
    """Of average and per-task curves, and of others.

    Every evaluation of a small study; fewer of a large one, whose page must stay small.
    """
    drawn = [group for group in study.groups if group.family in FAMILIES]  # pairs are matrices
    lengths = [(1 + len(g.tasks), len(g.evaluation_steps)) for g in drawn]  # lines, evaluations
    always = len(KINDS) - len(FIRST) - len(plasticity.QUANTITIES)
    others = sum(always + len(g.plasticity) for g in drawn)
    lines = sum(count for count, _ in lengths)
    longest = max((length for _, length in lengths), default=1)
    points = min(max(POINTS // max(lines, 1), FEWEST), longest)
    left = POINTS - sum(count * min(points, length) for count, length in lengths)
    return points, int(np.clip(left / max(others, 1), FEWEST, MOST))


def _family(settings: Sequence[Setting], key: str, title: str, look: Look) -> str:
    sequences = list(dict.fromkeys(g.sequence for setting in settings for g in setting.groups))
    charts = []
    kinds = set()
    for sequence in sequences:
        lines = [
            (setting.slot, setting.title, group)
            for setting in settings
            for group in setting.groups
            if group.sequence == sequence
        ]
        drawn = {kind: draw(lines, look.of(kind)) for kind, draw in KIND_PLOTS.items()}
        kinds |= {kind for kind, plot in drawn.items() if plot}
        charts.append(_chart(lines, drawn))
    return (
        f'<div class="curves"><h3>{escape(title)}</h3>{_left_out(settings, look)}'
        f'{_kinds(key, kinds)}{legend(settings)}<div class="charts">{"".join(charts)}</div></div>'
    )


def _left_out(settings: Sequence[Setting], look: Look) -> str:
    """How many evaluations are drawn, where it is not all of them."""
    groups = [group for setting in settings for group in setting.groups]
    found = []
    for where, points in (
        ("average success and success per task", look.points),
        ("training success, losses and everything else", look.others),
    ):
        parts: dict[str, None] = {}
        for group in groups:
            count, each = len(group.evaluation_steps), group.protocol.evaluations
            if (drawn := len(thin(count, points, each))) < count:
                parts[f"{drawn} of {count}"] = None
        found += [f"{', '.join(parts)} evaluations drawn of {where}"] if parts else []
    among = "the first and the last of each task are among them"
    return f'<p class="note">{", ".join(found)}; {among}.</p>' if found else ""


def _kinds(key: str, present: set[str]) -> str:
    """One kind of curve is shown at a time; the choice is style alone and needs no script."""
    boxes = "".join(
        f'<label><input type="radio" name="k-{escape(key)}" class="k-{kind}" value="{kind}" '
        f"{'checked' if kind == 'average' else ''}>{text}</label>"
        for kind, text in KINDS.items()
        if kind in present
    )
    return f'<div class="switches" role="radiogroup" aria-label="what is drawn">{boxes}</div>'


def legend(settings: Sequence[Setting]) -> str:
    boxes = "".join(
        f'<label data-method="{escape(one.title)}"><input type="checkbox" '
        f'class="t{one.slot % SLOTS}" checked><svg viewBox="0 0 30 8" aria-hidden="true">'
        f'<g class="{classes(one.slot)}"><polyline points="0,4 30,4"/></g></svg>'
        f"{escape(one.title)}</label>"
        for one in settings
    )
    return f'<div class="switches legend" role="group" aria-label="methods">{boxes}</div>'


def _chart(lines: Sequence[Course], drawn: dict[str, str]) -> str:
    """One sequence; one kind is shown at a time."""
    group = lines[0][2]
    body = "".join(f'<div class="kind {kind}">{plot}</div>' for kind, plot in drawn.items() if plot)
    title = names.sequence_title(group.sequence)
    tasks = escape(" → ".join(group.tasks))
    anchor = escape(f"curves-{group.protocol.key}-{group.sequence}")
    return (
        f'<figure class="chart" id="{anchor}" data-sequence="{escape(title)}"><figcaption>'
        f"<b>{escape(title)}</b> {tasks}</figcaption>{body}</figure>"
    )


def _axes(group: Group, what: str, bounds: Range, height: int = 300) -> Axes:
    ends = [group.protocol.steps * (position + 1.0) for position in range(len(group.tasks))]
    return Axes(
        label=f"{names.sequence_title(group.sequence)}: {what}",
        x=(0.0, ends[-1]),
        y=bounds,
        unit="steps",
        height=height,
        spans=tuple(zip(ends, group.tasks, strict=True)),
    )


def _plot(
    lines: Sequence[Course],
    look: Look,
    *,
    runs_of: Callable[[Group], Array],
    what: str,
    bounds: Range | None = (0.0, 1.0),
    height: int = 300,
) -> str:
    """Mean over seeds and its band for each setting; without bounds, those of the means."""
    limits = bounds or (-np.inf, np.inf)
    options, drawn = look.options, []
    for slot, name, group in lines:
        runs, each = runs_of(group), group.protocol.evaluations
        if np.isnan(runs).all():
            continue
        curve = seed_curve(runs, each, options.band, options.level, bounds=limits)
        drawn.append(Line(slot, name, group.evaluation_steps, curve, each))
    if not drawn:
        return ""
    axes = _axes(lines[0][2], what, bounds or span(extent(drawn)), height)
    return line_plot(drawn, axes, look.points)


def _scales(
    lines: Sequence[Course],
    look: Look,
    *,
    runs_of: Callable[[Group], Array],
    what: str,
    height: int = 300,
) -> str:
    """A plot for each scale of values, headed by its methods if there are several."""
    draw = partial(_plot, look=look, runs_of=runs_of, bounds=None, height=height)
    first, *others = by_scale([runs_of(group) for *_, group in lines])
    if not others:
        return draw(lines, what=what)
    plots = []
    for members in (first, *others):
        own = [lines[index] for index in members]
        title = ", ".join(name for _, name, _ in own)
        plots.append(f"<h4>{escape(title)}</h4>{draw(own, what=f'{what}, {title}')}")
    return "".join(plots)


def _tasks(lines: Sequence[Course], look: Look) -> str:
    """Success on each task over the run, one plot per position."""
    tasks = lines[0][2].tasks
    height = 110 if len(tasks) <= 6 else 64
    return "".join(
        f"<h4>{position + 1}. {escape(task)}</h4>"
        + _plot(
            lines,
            look,
            runs_of=partial(_task_runs, position),
            what=f"success on task {position + 1}, {task}",
            height=height,
        )
        for position, task in enumerate(tasks)
    )


def _task_runs(position: int, group: Group) -> Array:
    return metrics.task_curves(group.sound(group.success))[:, position]


def _measured(lines: Sequence[Course], look: Look, *, quantity: str) -> str:
    """A plasticity diagnostic, one plot per network."""
    found = plasticity.measures([group for _, _, group in lines])
    plots = []
    for measure in [measure for measure in found if measure[0] == quantity]:
        own = [line for line in lines if measure in line[2].plasticity]
        runs_of, what = partial(plasticity.runs_of, measure), plasticity.title(measure)
        plot = _scales(own, look, runs_of=runs_of, what=what, height=220)
        plots.append(f"<h4>{escape(measure[1])}</h4>{plot}" if plot else "")
    return "".join(plots)


KIND_PLOTS: dict[str, Callable[[Sequence[Course], Look], str]] = {
    "average": partial(_plot, runs_of=average_runs, what=KINDS["average"]),
    "tasks": _tasks,
    "current": partial(_plot, runs_of=current_runs, what=KINDS["current"]),
    **{
        name.replace("_", "-"): partial(
            partial(_plot, bounds=None) if name in names.ONE_SCALE else _scales,
            runs_of=partial(logged_runs, name),
            what=title,
        )
        for name, title in names.STATISTICS.items()
    },
    **{name.replace("_", "-"): partial(_measured, quantity=name) for name in plasticity.QUANTITIES},
}
