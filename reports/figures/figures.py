"""Figures for papers."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, count
from pathlib import Path
from warnings import catch_warnings, filterwarnings

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from cwbench.reports.analysis import comparison, metrics, names, plasticity, scales
from cwbench.reports.analysis.bands import average_runs, current_runs, logged_runs, seed_curve
from cwbench.reports.analysis.pairs import by_matrix, matrices
from cwbench.reports.analysis.scores import Scores, seed_matrix
from cwbench.reports.analysis.setups import Setting, all_settings, main_settings, titles
from cwbench.reports.analysis.study import DEFAULTS, Group, Options
from cwbench.reports.figures import fonts, standings
from cwbench.reports.figures.captions import caption
from cwbench.reports.figures.differences import differences
from cwbench.reports.figures.matrices import forgetting_matrices, pair_matrices
from cwbench.reports.figures.orders import orders
from cwbench.reports.figures.stability import after_switch
from cwbench.reports.figures.style import (
    COLUMN_WIDTH,
    MANY,
    STYLE,
    TEXT_WIDTH,
    draw_curve,
    figure_of,
    fitted,
    grid,
    legend,
    line_style,
    panel_width,
    room_below,
)
from cwbench.reports.figures.tuning import tuning
from cwbench.reports.tables import orders as order_table
from cwbench.reports.tables import tuning as tuning_table
from cwbench.reports.tables.model import score_cell
from cwbench.spec.text import file_name

Array = NDArray[np.float64]
SUFFIXES = (".pdf", ".png")
MOST_PANELS = 13  # of pairs or single tasks: as many pairs as the paper studies closely
TICKS = 4  # steps of an axis at most: ticks take a third of the drawing


def step_unit(group: Group) -> tuple[float, str]:
    whole = group.protocol.steps * len(group.tasks)
    return (1e6, "million steps") if whole >= 1e6 else (1e3, "thousand steps")


def steps(group: Group) -> Array:
    """Environment steps of a run's evaluations, in the unit of its axis."""
    return np.asarray(group.evaluation_steps / step_unit(group)[0])


def panels(settings: Sequence[Setting], height: float, left: float) -> dict[str, Axes]:
    """Sequence -> its axes with steps across and task boundaries."""
    groups = {g.sequence: g for setting in settings for g in setting.groups}
    columns = min(3, len(groups))
    size = (panel_width(columns, left=left, gap=left - 0.1), height)
    below = room_below(settings, COLUMN_WIDTH if columns == 1 else TEXT_WIDTH)
    axes = grid(len(groups), size=size, gap=(left - 0.1, 0.42), margin=(left, below, 0.15, 0.3))
    for index, (axis, group) in enumerate(zip(axes, groups.values(), strict=True)):
        unit, name = step_unit(group)
        ends = np.arange(1, len(group.tasks) + 1) * group.protocol.steps / unit
        whole = axis.get_xaxis_transform()
        axis.vlines(ends[:-1], 0, 1, color="0.75", lw=0.6, ls="--", transform=whole)
        axis.set_xlim(0, ends[-1])
        axis.locator_params(axis="x", nbins=TICKS)
        # An explicit y spares matplotlib the search for one, which takes a fifth of the drawing.
        axis.set_title(names.sequence_title(group.sequence), y=1.0, pad=3)
        if index >= len(groups) - 3:
            axis.set_xlabel(name)
        else:
            axis.tick_params(labelbottom=False)
    legend(axes, settings)
    return dict(zip(groups, axes, strict=True))


def curves(
    settings: Sequence[Setting],
    runs_of: Callable[[Group], Array],
    label: str,
    options: Options = DEFAULTS,
    bounds: tuple[float, float] = (0, 1),
) -> Figure:
    """One panel per sequence, one line per setting."""
    axes = panels(settings, 1.2, 0.5 if bounds == (0, 1) else 0.6)
    for setting in settings:
        for group in setting.groups:
            each = group.protocol.evaluations
            curve = seed_curve(runs_of(group), each, options.band, options.level, bounds=bounds)
            draw_curve(axes[group.sequence], steps(group), curve, setting.slot)
    for number, axis in enumerate(axes.values()):
        if bounds == (0, 1):
            axis.set_yticks((0, 0.5, 1))
            axis.set_ylim(-0.02, 1.02)
        else:
            axis.locator_params(axis="y", nbins=TICKS)
            axis.ticklabel_format(axis="y", scilimits=(-2, 3))
        if number % 3 == 0:
            axis.set_ylabel(label)
        elif bounds == (0, 1):
            axis.tick_params(labelleft=False)
    return figure_of(list(axes.values()))


def task_curves(settings: Sequence[Setting]) -> Figure:
    """Success on each task over the whole run: a strip per position, a panel per sequence."""
    tasks = {g.sequence: g.tasks for setting in settings for g in setting.groups}
    longest = max(map(len, tasks.values()))
    axes = panels(settings, 0.24 * max(longest, 5), 1.0)
    for setting in settings:
        for group in setting.groups:
            curves = metrics.task_curves(group.sound(group.success))
            each = group.protocol.evaluations
            _strips(axes[group.sequence], steps(group), curves, each, setting.slot)
    for sequence, axis in axes.items():
        count = len(tasks[sequence])
        heights = [1.15 * (count - 1 - position) for position in range(count)]
        axis.hlines(heights, *axis.get_xlim(), color="0.85", lw=0.5, zorder=0)
        axis.set_yticks([place + 0.5 for place in heights], tasks[sequence], fontsize=6)
        axis.tick_params(axis="y", length=0)
        axis.set_ylim(-0.05, 1.15 * count)
    return figure_of(list(axes.values()))


def _strips(axis: Axes, x: Array, curves: Array, evaluations: int, index: int) -> None:
    """Mean curve of each position, [R, N, N * E], drawn above its own base line."""
    for position in range(curves.shape[1]):
        runs = curves[:, position]
        known = ~np.isnan(runs).all(0)
        if known.any():
            mean = seed_curve(runs, evaluations, "runs").mean
            base = 1.15 * (curves.shape[1] - 1 - position)
            axis.plot(x[known], base + mean[known], **(line_style(index) | {"lw": 0.9}))


def _family_panels(count: int, below: float, width: float | None = None) -> list[Axes]:
    columns = 1 if width else min(3, count)
    size = (width or panel_width(columns, left=0.55, gap=0.35), 1.5)
    gap, margin = (0.35, 0.3 + below), (0.55, below, 0.15, 0.3)
    return grid(count, columns=columns, size=size, gap=gap, margin=margin)


def _named_panels(scores: Scores, families: Sequence[str]) -> list[Axes]:
    """With the methods' names below."""
    most = max(len(scores.settings(family)) for family in families)
    return _family_panels(len(families), 0.85, TEXT_WIDTH - 0.7 if most > MANY else None)


def transfer(scores: Scores, families: Sequence[str]) -> Figure:
    """Mean forward transfer over sequences per method with its interval."""
    axes = _named_panels(scores, families)
    for axis, family in zip(axes, families, strict=True):
        settings = scores.settings(family)
        count = len({group.sequence for group in scores.groups(family)})
        for index, setting in enumerate(settings):
            score = score_cell(scores, setting.groups, "forward_transfer", count).score
            if score is None or np.isnan(score.value):
                axis.text(index, 0, "no data", rotation=90, ha="center", fontsize=6, color="0.5")
                continue
            got = score.estimate
            axis.bar(
                index, got.value, color=line_style(setting.slot)["color"], alpha=0.85, width=0.7
            )
            if not np.isnan(got.low):
                axis.vlines(index, got.low, got.high, color="0.25", lw=1.6)
        axis.axhline(0, color="0.3", lw=0.6)
        axis.set_xlim(-0.6, len(settings) - 0.4)
        shown, points = fitted(titles(settings))
        axis.set_xticks(range(len(settings)), shown, rotation=60, ha="right", fontsize=points)
        axis.set_title(
            f"{scores.title(family)} ({count} sequences)" if count > 1 else scores.title(family)
        )
    axes[0].set_ylabel("forward transfer")
    return figure_of(axes)


def strips(scores: Scores, families: Sequence[str]) -> Figure:
    """Every run as a dot: average performance of each seed on each sequence."""
    axes = _named_panels(scores, families)
    for axis, family in zip(axes, families, strict=True):
        settings = scores.settings(family)
        for index, setting in enumerate(settings):
            values, _ = seed_matrix(scores, setting.groups, "average_performance")
            spots = index + np.linspace(-0.25, 0.25, len(values)) if len(values) > 1 else [index]
            for spot, row in zip(spots, values, strict=True):
                colour = line_style(setting.slot)["color"]
                axis.plot([spot] * len(row), row, "o", ms=2.2, color=colour, alpha=0.6, mew=0)
            mean = scores.score(setting.groups, "average_performance").value
            axis.hlines(mean, index - 0.35, index + 0.35, color="black", lw=1.2)
        shown, points = fitted(titles(settings))
        axis.set_xticks(range(len(settings)), shown, rotation=60, ha="right", fontsize=points)
        axis.set_ylim(-0.02, 1.02)
        axis.set_title(scores.title(family))
    axes[0].set_ylabel("average performance of a run")
    return figure_of(axes)


def profiles(scores: Scores, families: Sequence[str]) -> Figure:
    """Share of runs whose average performance exceeds a threshold, with bootstrap bands."""
    every = scores.joined_settings(families)
    slot_of = {setting.setup: setting.slot for setting in every}
    width = COLUMN_WIDTH if len(families) == 1 else TEXT_WIDTH
    axes = _family_panels(len(families), room_below(every, width))
    thresholds = np.linspace(0, 1, 101)
    for axis, family in zip(axes, families, strict=True):
        for setting in scores.settings(family):
            values, _ = seed_matrix(scores, setting.groups, "average_performance")
            if not np.isnan(values).all():
                share = comparison.profile(values, thresholds)
                low, high = comparison.profile_band(values, thresholds, scores.level)
                style = line_style(slot_of[setting.setup])
                axis.plot(thresholds, share, **style)
                axis.fill_between(thresholds, low, high, color=style["color"], alpha=0.13, lw=0)
        axis.set_title(scores.title(family))
        axis.set_xlabel("average performance")
        axis.set_ylim(-0.02, 1.02)
    axes[0].set_ylabel("share of runs above")
    legend(axes, every)
    return figure_of(axes)


def _logged(
    settings: list[Setting],
) -> Iterator[tuple[str, int, list[Setting], Callable[[Group], Array]]]:
    """Statistics of training: name, and numbered parts that one axis can show, with their runs."""
    for name in names.STATISTICS:
        runs_of = partial(logged_runs, name)
        parts = [settings] if name in names.ONE_SCALE else scales.split(settings, runs_of)
        for number, part in enumerate(parts, start=1):
            yield name, number, part, runs_of


# Figures of all methods, with a panel per family.
COMPARED = {
    "differences": differences,
    "after-switch": after_switch,
    "seeds": strips,
    "profiles": profiles,
    "aggregates": standings.aggregates,
    "ranks": standings.ranks,
}


@dataclass(frozen=True)
class Planned:
    """A figure that can be drawn."""

    caption: str
    make: Callable[[], Figure]


def plan(scores: Scores) -> dict[str, Planned]:
    """Every figure that a protocol's runs can fill, by name."""
    found: dict[str, Planned] = {}
    for name, text, make in _figures(scores):
        candidates = chain([name], (f"{name}-{number}" for number in count(2)))
        free = next(one for one in candidates if one not in found)  # labels may be equal
        found[free] = Planned(text, make)
    return found


Plan = Iterator[tuple[str, str, Callable[[], Figure]]]  # name, caption, maker


def _figures(scores: Scores) -> Plan:
    """As above; two settings of one label have figures of one name."""
    present, options = scores.families, scores.study.options
    alone = scores.groups("single")
    if 0 < len({group.sequence for group in alone}) <= MOST_PANELS:
        figure = partial(curves, main_settings(alone), average_runs, "success", options)
        text = caption("success", options, family=scores.title("single"))
        yield "single-success", text, figure
    yield from _pair_figures(scores)
    for family in present:
        groups, settings = scores.groups(family), scores.settings(family)
        title = scores.title(family)
        yield from _curve_figures(groups, options, family, title)
        text = caption("matrices", options, family=title)
        yield f"{family}-matrices", text, partial(forgetting_matrices, scores, settings)
        yield from _ablation_figures(groups, options, family, title)
    if present:
        note = scores.reference_note(*present)
        yield "transfer", caption("transfer", options) + note, partial(transfer, scores, present)
        for name, make in COMPARED.items():
            yield name, caption(name, options), partial(make, scores, present)
        for family in present:
            text = caption("metrics", options, family=scores.title(family))
            figure = partial(standings.metrics, scores, family)
            yield f"{family}-metrics", text + scores.reference_note(family), figure
        for name, (points_of, title) in standings.TRADEOFFS.items():
            text = caption(name, options) + note * (name == "performance-transfer")
            yield name, text, partial(standings.tradeoff, scores, present, points_of, title)
    if order_table.present(scores):
        yield "orders", caption("orders", options), partial(orders, scores)
    for number, record in enumerate(tuning_table.records(scores), start=1):
        name = f"tuning-{file_name(record['method'])}-{number}"
        yield name, caption("tuning", options), partial(tuning, record)


def _pair_figures(scores: Scores) -> Plan:
    def figure(groups: list[Group]) -> Figure:
        return pair_matrices(matrices(scores, groups))

    pairs, options = scores.groups("pairs"), scores.study.options
    for groups in by_matrix(pairs).values():
        label = f"{names.pairs_of(groups[0].sequence)}-{groups[0].label}"
        yield f"pairs-{file_name(label)}", caption("pairs", options), partial(figure, groups)
    if 0 < len({group.sequence for group in pairs}) <= MOST_PANELS:
        title = scores.title("pairs")
        yield from _curve_figures(pairs, options, "pairs-curves", title)
        yield from _ablation_figures(pairs, options, "pairs-curves", title)


def _curve_figures(groups: Sequence[Group], options: Options, start: str, family: str) -> Plan:
    """Everything over steps: success, statistics of training, plasticity."""
    settings, drawn = main_settings(groups), partial(curves, options=options)
    said = partial(caption, options=options, family=family)
    average = partial(drawn, settings, average_runs, "average success")
    yield f"{start}-average", said("average"), average
    current = partial(drawn, settings, current_runs, "training success")
    yield f"{start}-current", said("current"), current
    for name, number, part, runs_of in _logged(settings):
        label = names.STATISTICS[name]
        other = " of methods with values on another scale" * (number > 1)
        slug = name.replace("_", "-") + f"-{number}" * (number > 1)
        figure = partial(drawn, part, runs_of, label, bounds=(-np.inf, np.inf))
        yield f"{start}-{slug}", said("training", what=label + other), figure
    for measure in plasticity.measures(groups):
        measured = main_settings(plasticity.having(groups, measure))
        runs_of, quantity = partial(plasticity.runs_of, measure), plasticity.QUANTITIES[measure[0]]
        title = plasticity.title(measure)
        figure = partial(drawn, measured, runs_of, title, bounds=quantity.bounds)
        text = said("plasticity", what=quantity.title + f" of the {measure[1]}" * bool(measure[1]))
        yield f"{start}-{plasticity.slug(measure)}", text, figure
    yield f"{start}-tasks", said("tasks"), partial(task_curves, settings)


def _ablation_figures(groups: Sequence[Group], options: Options, start: str, family: str) -> Plan:
    """A figure for each method that has several settings."""
    for method in dict.fromkeys(group.method for group in groups):
        settings = all_settings([group for group in groups if group.method == method])
        if len(settings) > 1:
            figure = partial(curves, settings, average_runs, "average success", options=options)
            text = caption("settings", options, family=family)
            yield f"{start}-ablation-{file_name(method)}", text, figure


def draw(scores: Scores, name: str, file: Path, suffixes: Sequence[str] = SUFFIXES[:1]) -> None:
    """One figure, each of SUFFIXES a file; `file` has none. Each is drawn separately."""
    with (
        matplotlib.rc_context(STYLE | fonts.style(fonts.characters(scores.study))),
        catch_warnings(),
    ):
        filterwarnings("ignore", "Glyph .* missing from")  # reported once, by `fonts.problems`
        figure = plan(scores)[name].make()
        for suffix in suffixes:
            figure.savefig(file.with_name(file.name + suffix))
