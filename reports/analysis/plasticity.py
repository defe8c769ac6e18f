"""Plasticity diagnostics of runs: one curve per quantity and network, on the grid of evaluations.

Layers of a network are averaged, and so are the earlier tasks of `kl`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cwbench.reports.analysis.study import Curve, Group, Measure, Study

Array = NDArray[np.float64]
Curves = Mapping[str, Mapping[Measure, Curve]]  # by run


@dataclass(frozen=True)
class Quantity:
    title: str
    bounds: tuple[float, float]
    scale: float = 1.0
    compares: bool = False  # with earlier tasks: the first task has none


QUANTITIES = {
    "dormant": Quantity("dormant units (%)", (0, 100), scale=100),
    "effective_rank": Quantity("effective rank", (0, np.inf)),
    "weight_norm": Quantity("weight norm", (0, np.inf)),
    "gradient_norm": Quantity("gradient norm", (0, np.inf)),
    "gradient_cosine": Quantity("cosine of old and new gradients", (-1, 1), compares=True),
    "kl": Quantity("KL from earlier policies", (0, np.inf), compares=True),
}


def add(study: Study, diagnostics: pd.DataFrame) -> None:
    """Give each group the curves of its runs; none where nothing was measured."""
    if len(diagnostics):
        curves = _curves(diagnostics)
        study.groups = [replace(group, plasticity=_arrays(group, curves)) for group in study.groups]


def _curves(table: pd.DataFrame) -> Curves:
    """Averages over the parts of a network."""
    network = table["part"].str.partition(".")[0].where(table["quantity"] != "kl", "")
    # Infinity, because the mean would leave NaN out: one layer without a number leaves none.
    value = table["value"].where(np.isfinite(table["value"]), np.inf)
    keys = ["run", "quantity", "network", "step"]
    table = table.assign(network=network, value=value)
    means = table.groupby(keys, observed=True)["value"].mean().reset_index()
    steps, values = means["step"].to_numpy(np.int64), means["value"].to_numpy(np.float64)
    values = np.where(np.isfinite(values), values, np.nan)
    found: dict[str, dict[Measure, Curve]] = {}
    for key, rows in means.groupby(keys[:3], observed=True).indices.items():
        run, quantity, network = map(str, key)  # type: ignore[call-overload]
        found.setdefault(run, {})[quantity, network] = (steps[rows], values[rows])
    return found


def _arrays(group: Group, curves: Curves) -> dict[Measure, Array]:
    """[R, N, E] of each measure that some run of the group has."""
    runs = [curves.get(run.name, {}) for run in group.runs]
    found = {measure for own in runs for measure in own if measure[0] in QUANTITIES}
    on_grid, tasks = group.protocol.on_grid, len(group.tasks)
    return {
        measure: QUANTITIES[measure[0]].scale
        * np.array([on_grid(own.get(measure), tasks) for own in runs])
        for measure in found
    }


def measures(groups: Sequence[Group]) -> list[Measure]:
    """What was measured in any of the groups, in the order of QUANTITIES."""
    order = list(QUANTITIES)
    found = {measure for group in groups for measure in group.plasticity}
    return sorted(found, key=lambda measure: (order.index(measure[0]), measure[1]))


def having(groups: Sequence[Group], measure: Measure) -> list[Group]:
    return [group for group in groups if measure in group.plasticity]


def title(measure: Measure) -> str:
    """`dormant units (%), actor`."""
    return ", ".join(filter(None, (QUANTITIES[measure[0]].title, measure[1])))


def slug(measure: Measure) -> str:
    """`dormant-actor`, for names of files."""
    return "-".join(filter(None, measure)).replace("_", "-")


def runs_of(measure: Measure, group: Group) -> Array:
    """[R, N * E]."""
    return group.sound(group.plasticity[measure]).reshape(len(group.runs), -1)


def end_values(group: Group, measure: Measure, window: int) -> Array:
    """[R, N]: mean of the last `window` evaluations of each task; NaN for unfinished runs."""
    done = np.array([run.state == "done" for run in group.runs])
    ends = group.plasticity[measure][:, :, -window:].mean(2)
    return np.where(done[:, None], ends, np.nan)
