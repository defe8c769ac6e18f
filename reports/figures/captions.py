"""The text below each figure in `report.tex`."""

from collections.abc import Callable, Sequence

from cwbench.reports.analysis import names, plasticity
from cwbench.reports.analysis.bands import BANDS
from cwbench.reports.analysis.bands import SMOOTH as MOST
from cwbench.reports.analysis.study import Options
from cwbench.spec.text import counted

WHOLE = {  # figures with a panel per family of sequences
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
}
SMOOTH = f"trailing means of at most {counted(MOST, 'evaluation')} within a task"
OF_FAMILY = {  # `FAMILY-NAME`
    "success": f"Success while a task is learned alone, {SMOOTH}. {{bands}}",
    "average": f"Average success over all tasks of a sequence, {SMOOTH}. {{bands}}",
    "current": f"Success in training on the current task, {SMOOTH}. {{bands}}",
    "tasks": f"Success on each task while the sequence is learned, {SMOOTH}; means over seeds.",
    "matrices": "Success on each task (across) after training up to each task (down): end values, "
    "means over seeds.",
    "metrics": "Other metrics with {level:g} % bootstrap intervals; every run is a dot.",
}
OF_METHOD = {  # what names of single methods' figures start with
    "pairs-": "Pairs of tasks: success on both tasks at the end, and forgetting of the first; "
    "means over seeds. Darker is worse.",
    "tuning-": "Settings tried by cwbench tune: mean anytime performance with 90 % t "
    "intervals over runs, the chosen setting on top.",
}
PAIR_CURVES = "pairs-curves-"  # what names of curves of pairs start with


def caption(name: str, options: Options, title: Callable[[str], str]) -> str:
    """A sentence or two. `title` says what a family of sequences is called."""
    level = 100 * options.level
    band = BANDS[options.band].format(level=level)
    of_pairs = name.startswith(PAIR_CURVES)
    whole = WHOLE.get(name) or next((t for s, t in OF_METHOD.items() if name.startswith(s)), "")
    if whole and not of_pairs:
        return whole.format(level=level, bands=band)
    family, _, kind = name.replace(PAIR_CURVES, "pairs-").partition("-")
    text = OF_FAMILY.get(kind) or _curve(kind)
    return f"{title(family)}. {text.format(level=level, bands=band)}"


def transfer_families(name: str, families: Sequence[str]) -> Sequence[str]:
    """The families of sequences whose transfer a figure shows."""
    if name in ("transfer", "performance-transfer"):
        return families
    return [family for family in families if name == f"{family}-metrics"]


def _curve(kind: str) -> str:
    """Of several settings, of a statistic of training or of a plasticity diagnostic."""
    if kind.startswith("ablation-"):
        return f"Average success with several settings of one method, {SMOOTH}. {{bands}}"
    for name, title in names.STATISTICS.items():
        if kind.startswith(start := name.replace("_", "-")):
            other = " of methods with values on another scale" if kind != start else ""
            return f"{_capital(title)}{other} while training, {SMOOTH}. {{bands}}"
    start = next(name for name in plasticity.QUANTITIES if kind.startswith(name.replace("_", "-")))
    network = kind.removeprefix(start.replace("_", "-")).removeprefix("-")
    of = f" of the {network}" if network else ""
    title = _capital(plasticity.QUANTITIES[start].title)
    return f"{title}{of} at evaluations, {SMOOTH}. {{bands}}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
