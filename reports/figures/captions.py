"""The text below each figure in `report.tex`."""

from cwbench.reports.analysis.bands import BANDS
from cwbench.reports.analysis.bands import SMOOTH as MOST
from cwbench.reports.analysis.study import Options
from cwbench.spec.text import counted

SMOOTH = f"trailing means of at most {counted(MOST, 'evaluation')} within a task"
TEXTS = {
    # With a panel per family of sequences.
    "transfer": "Forward transfer with {level:g} % bootstrap intervals.",
    "differences": "Differences in average performance, row minus column, with Holm-adjusted p "
    "values of the sign-flip test.",
    "after-switch": "Success on old tasks after a switch, relative to the value before it. {bands}",
    "seeds": "Average performance of every run; lines are means.",
    "profiles": "Performance profiles: share of runs above a threshold, with {level:g} % bootstrap "
    "bands.",
    "aggregates": "Aggregates of average performance with {level:g} % bootstrap intervals.",
    "ranks": "Mean ranks with {level:g} % bootstrap intervals. A bar joins methods that cannot "
    "be distinguished.",
    "performance-transfer": "Average performance against forward transfer, with {level:g} % "
    "bootstrap intervals. Grey: published means, joined to ours.",
    "performance-memory": "Average performance against bytes of replay memory, of what the "
    "method keeps and of parameters, with {level:g} % bootstrap intervals.",
    "orders": "Average performance over orders of tasks and seeds; every order is a dot.",
    # Of one family.
    "success": "Success while a task is learned alone, {smooth}. {bands}",
    "average": "Average success over all tasks of a sequence, {smooth}. {bands}",
    "current": "Success in training on the current task, {smooth}. {bands}",
    "tasks": "Success on each task while the sequence is learned, {smooth}; means over seeds.",
    "matrices": "Success on each task (across) after training up to each task (down): end values, "
    "means over seeds.",
    "metrics": "Other metrics with {level:g} % bootstrap intervals; every run is a dot.",
    "settings": "Average success with several settings of one method, {smooth}. {bands}",
    "training": "{what} while training, {smooth}. {bands}",
    "plasticity": "{what} at evaluations, {smooth}. {bands}",
    # Of one method.
    "pairs": "Pairs of tasks: success on both tasks at the end, and forgetting of the first; "
    "means over seeds. Darker is worse.",
    "tuning": "Settings tried by cwbench tune: mean anytime performance with 90 % t intervals "
    "over runs, the chosen setting on top.",
}


def caption(kind: str, options: Options, *, family: str = "", what: str = "") -> str:
    """A sentence or two. `family` is a title; `what` is drawn where the kind leaves it open."""
    level = 100 * options.level
    text = TEXTS[kind].format(
        level=level,
        bands=BANDS[options.band].format(level=level),
        smooth=SMOOTH,
        what=what[:1].upper() + what[1:],
    )
    return f"{family}. {text}" if family else text
