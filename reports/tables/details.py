"""Tables beyond the headline: tasks, pairs, single tasks, settings."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from cwbench.reports.analysis import metrics, names, stability
from cwbench.reports.analysis.pairs import QUANTITIES, by_matrix, matrices, per_run
from cwbench.reports.analysis.scores import AT_ONCE, Scores, align, nothing
from cwbench.reports.analysis.setups import Setting, all_settings, titles
from cwbench.reports.analysis.study import Group
from cwbench.reports.tables.model import Block, Cell, empty_cell, mark_bold, scored_columns

Array = NDArray[np.float64]
THRESHOLD = 0.8  # "learned", for the time it takes
FAILED = 0.5  # "not learned", for the count

Positions = list[tuple[Group, int]]


def tasks(scores: Scores, family: str) -> tuple[Block, ...]:
    """Performance, forgetting and transfer per task."""
    return tuple(
        _per_task(
            scores,
            family,
            names.METRICS[metric].title,
            partial(_task_score, scores, metric=metric),
            bold=names.METRICS[metric].sign > 0,
        )
        for metric in names.HEADLINE
    )


def learning(scores: Scores, family: str) -> tuple[Block, ...]:
    """Time to threshold and failures to learn per task."""
    failed = f"Failed to learn (end value below {FAILED:g})"
    return (
        _per_task(scores, family, f"Steps to {THRESHOLD:g}", _of_own_windows(_steps_to_threshold)),
        _per_task(scores, family, failed, _of_own_windows(partial(_failures, scores))),
    )


def _of_own_windows(cell: Callable[[Positions], Cell]) -> Callable[[Positions], Cell]:
    """Empty where tasks are trained at once: they have no windows of their own."""

    def checked(positions: Positions) -> Cell:
        if any(group.joint for group, _ in positions):
            groups = [group for group, _ in positions]
            return replace(empty_cell(groups), score=nothing(AT_ONCE))
        return cell(positions)

    return checked


def stability_gap(scores: Scores, family: str) -> tuple[Block, ...]:
    """What a switch does to old tasks, a row per method."""
    settings, count = scores.settings(family), len({g.sequence for g in scores.groups(family)})
    measures = ("minimum_after_learning", "drop_depth", "drop_length")
    columns = scored_columns(scores, [one.groups for one in settings], measures, count)
    columns.append(tuple(_recovery(scores, one.groups) for one in settings))
    rows = tuple(zip(titles(settings), zip(*columns, strict=True), strict=True))
    return (Block("", "Method", ("Minimum", "Depth", "In drops", "Recovered"), rows),)


def own_windows(scores: Scores, family: str) -> tuple[Block, ...]:
    """Performance as CompoNet and CKA-RL measure it, and measured on all tasks at the end."""
    settings, count = scores.settings(family), len({g.sequence for g in scores.groups(family)})
    measures = ("training_performance", "average_performance", "forgetting")
    columns = scored_columns(scores, [one.groups for one in settings], measures, count)
    rows = tuple(zip(titles(settings), zip(*columns, strict=True), strict=True))
    return (Block("", "Method", ("Own window", "All tasks at the end", "Forgetting"), rows),)


def _recovery(scores: Scores, groups: Sequence[Group]) -> Cell:
    """How many drops end before the next switch, and the median time that takes."""
    depth = scores.score(groups, "drop_depth")
    if np.isnan(depth.value):  # nothing has ended, or there is no switch
        return replace(empty_cell(groups), score=depth)
    found = [stability.recoveries(group.complete, scores.window) for group in groups]
    times = np.concatenate(found)
    if not len(times):
        return replace(empty_cell(groups), text="no drop")
    middle = float(np.quantile(times, 0.5, method="inverted_cdf"))
    schedule = groups[0].protocol.schedule
    steps = min(middle * schedule["eval_every"], schedule["steps_per_task"])
    after = f", {steps / 1000:g}k steps" if np.isfinite(middle) else ""
    text = f"{np.isfinite(times).sum()} of {len(times)}{after}"
    return replace(empty_cell(groups), text=text)


def _per_task(
    scores: Scores, family: str, title: str, cell: Callable[[Positions], Cell], bold: bool = False
) -> Block:
    """A row per task, a column per method."""
    settings = scores.settings(family)
    rows = []
    for task in sorted({task for one in settings for g in one.groups for task in g.tasks}):
        cells = tuple(
            cell([(g, i) for g in one.groups for i, name in enumerate(g.tasks) if name == task])
            for one in settings
        )
        rows.append((task, mark_bold(cells, 1) if bold else cells))
    return Block(title, "Task", titles(settings), tuple(rows))


def _task_score(scores: Scores, positions: Positions, metric: str) -> Cell:
    seeds = [scores.usable_at(position, metric) for position in positions]
    cell = empty_cell([group for group, _ in positions], seeds)
    return replace(cell, score=scores.task_score(positions, metric)) if positions else cell


def _known(positions: Positions, values: list[Array]) -> Array:
    """All runs' values of [R, N] arrays at their positions, without the unfinished ones."""
    found = [value[:, position] for (_, position), value in zip(positions, values, strict=True)]
    flat = np.concatenate(found) if found else np.array([])
    return np.asarray(flat[~np.isnan(flat)])


def _steps_to_threshold(positions: Positions) -> Cell:
    """Median over runs, and how many reached it at all."""
    need = [metrics.evaluations_to_threshold(group.complete, THRESHOLD) for group, _ in positions]
    evaluations = _known(positions, need)
    if not len(evaluations):
        cell = empty_cell([group for group, _ in positions])
        few = any(g.protocol.evaluations < metrics.SUSTAINED for g, _ in positions)
        return replace(cell, score=nothing("fewer than three evaluations a task")) if few else cell
    schedule = positions[0][0].protocol.schedule
    middle = float(np.quantile(evaluations, 0.5, method="inverted_cdf"))
    never, steps = np.isinf(middle), middle * schedule["eval_every"]
    reached = f"{np.isfinite(evaluations).sum()}/{len(evaluations)}"
    text = f"never ({reached})" if never else f"{steps / 1000:g}k ({reached})"
    return replace(empty_cell([group for group, _ in positions]), text=text, amount=steps)


def _failures(scores: Scores, positions: Positions) -> Cell:
    failed = _known(
        positions,
        [metrics.failed_to_learn(g.complete, scores.window, FAILED) for g, _ in positions],
    )
    cell = empty_cell([group for group, _ in positions])
    return replace(cell, text=f"{failed.sum():.0f} of {len(failed)}") if len(failed) else cell


def single_tasks(scores: Scores) -> tuple[Block, ...]:
    """The single-task runs: what a task is worth without any other."""
    rows, groups = [], scores.groups("single")
    named = {setting.setup: setting.title for setting in all_settings(groups)}
    for group in groups:
        positions = [(group, 0)]
        area = metrics.area(group.complete)[:, 0]
        values, seeds = align([group], [area[None]])
        cell, score = empty_cell([group]), scores.score([group], "average_performance")
        area_cell = replace(cell, score=scores.mean(values, seeds, (0, 1)) if seeds else score)
        name = f"{group.tasks[0]}, {named[group.setup]}"
        end = replace(cell, score=score)
        rows.append(
            (name, (end, area_cell, _steps_to_threshold(positions), _failures(scores, positions)))
        )
    columns = ("End value", "Area", f"Steps to {THRESHOLD:g}", "Failed to learn")
    return (Block("", "Task and method", columns, tuple(rows)),)


def pair_summary(scores: Scores) -> tuple[Block, ...]:
    """Averages and counts of the pair matrices, a row per setting."""
    rows, counted = [], ("second task at zero", "second task above 0, below 0.5")
    for title, groups in by_matrix(scores.groups("pairs")).items():
        found = matrices(scores, groups)
        counts, ended = found.counts(), [per_run(group, scores.window) for group in groups]
        seeds = {name: [int((~np.isnan(one[name])).sum()) for one in ended] for name in QUANTITIES}
        cells = [
            replace(empty_cell(groups, seeds[name]), score=found.averages[name])
            for name in QUANTITIES
        ]
        cells += [Cell(text=str(counts[name])) for name in (*counted, "forgetting above 0.1")]
        rows.append((title, (*cells, Cell(text=f"{found.pairs} of {len(groups)}"))))
    columns = ("First task", "Second task", "Forgetting", "Second = 0", "Second in (0, 0.5)")
    return (Block("", "Method", (*columns, "Forgetting > 0.1", "Pairs ended"), tuple(rows)),)


def settings(scores: Scores, family: str) -> tuple[Block, ...]:
    """Methods run with several options: a row per setting.

    A block has the sequences that the same settings were run on. A method's main setting alone is
    left out: the other tables are about it.
    """
    groups = scores.groups(family)
    main = {setting.setup for setting in scores.settings(family)}
    blocks = []
    for method in dict.fromkeys(group.method for group in groups):
        own = [group for group in groups if group.method == method]
        every = all_settings(own)
        together: dict[tuple[Setting, ...], list[str]] = {}
        for sequence in sorted({group.sequence for group in own}, key=names.natural):
            run = (one for one in every if any(g.sequence == sequence for g in one.groups))
            together.setdefault(tuple(run), []).append(sequence)
        for found, shared in together.items():
            if len(found) == 1 and found[0].setup in main:
                continue
            rows = {one.title: [g for g in one.groups if g.sequence in shared] for one in found}
            what = names.method_title(method)
            where = ", ".join(map(names.sequence_title, shared))
            blocks.append(_settings_block(scores, f"{what} on {where}", rows, len(shared)))
    return tuple(blocks)


def _settings_block(
    scores: Scores, title: str, rows: dict[str, list[Group]], sequences: int
) -> Block:
    columns = scored_columns(scores, rows.values(), names.HEADLINE, sequences)
    return Block(
        title,
        "Setting",
        tuple(names.METRICS[metric].short for metric in names.HEADLINE),
        tuple(zip(rows, zip(*columns, strict=True), strict=True)),
    )
