"""What stands below each figure in `report.tex`."""

from collections.abc import Callable

from cwbench.reports.analysis import names, plasticity
from cwbench.reports.analysis.study import Options

BANDS = {
    "interval": "Bands: {level:g} % t intervals over seeds.",
    "percentile": "Bands: {level:g} % percentile bootstrap over seeds.",
    "sd": "Bands: one standard deviation over seeds.",
    "runs": "Thin lines: single runs.",
}
WHOLE = {  # figures with a panel per family of sequences
    "transfer": "Forward transfer with {level:g} % bootstrap intervals.",
    "differences": "Differences in average performance, row minus column, with Holm-adjusted p "
    "values of the sign-flip test.",
    "after-switch": "Success on old tasks after a switch, relative to the value before it. {bands}",
    "seeds": "Average performance of every run; lines are means.",
    "profiles": "Performance profiles: share of runs above a threshold, with {level:g} % bootstrap "
    "bands.",
    "aggregates": "Aggregates of average performance with {level:g} % bootstrap intervals.",
    "ranks": "Mean ranks with {level:g} % bootstrap intervals. A bar joins methods that are not "
    "told apart.",
    "performance-transfer": "Average performance against forward transfer, with {level:g} % "
    "bootstrap intervals. Grey: published means, joined to ours.",
    "performance-memory": "Average performance against bytes of replay memory, of what the "
    "method keeps and of parameters, with {level:g} % bootstrap intervals.",
    "orders": "Average performance over orders of tasks and seeds; every order is a dot.",
}
OF_FAMILY = {  # `FAMILY-NAME`
    "average": "Average success over all tasks of a sequence. {bands}",
    "current": "Success in training on the current task. {bands}",
    "tasks": "Success on each task while the sequence is learned; means over seeds.",
    "matrices": "Success on each task (across) after training up to each task (down); means over "
    "seeds.",
    "metrics": "Other metrics with {level:g} % bootstrap intervals; every run is a dot.",
}


def caption(name: str, options: Options, title: Callable[[str], str]) -> str:
    """A sentence or two; the name in words for figures of single methods.

    `title` says what a family of sequences is called.
    """
    level = 100 * options.level
    bands = BANDS[options.band].format(level=level)
    text, family = WHOLE.get(name, ""), ""
    if not text:
        family, _, kind = name.partition("-")
        text = OF_FAMILY.get(kind, "") or _curve(kind)
    if not text:
        return name.replace("-", " ").replace("_", " ")
    where = f"{title(family)}. " if family else ""
    return where + text.format(level=level, bands=bands)


def _curve(kind: str) -> str:
    """Of a statistic of training or a plasticity diagnostic."""
    for name, title in names.STATISTICS.items():
        if kind.startswith(start := name.replace("_", "-")):
            other = " of methods with values on another scale" if kind != start else ""
            return f"{_capital(title)}{other} while training. {{bands}}"
    for name, quantity in plasticity.QUANTITIES.items():
        if kind.startswith(start := name.replace("_", "-")):
            network = kind.removeprefix(start).removeprefix("-")
            of = f" of the {network}" if network else ""
            return f"{_capital(quantity.title)}{of} at evaluations. {{bands}}"
    return ""


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
