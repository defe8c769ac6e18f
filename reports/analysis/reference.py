"""Single-task reference curves, which forward transfer is measured against.

They come from runs named `single-TASK` in the results folder, trained by fine-tuning under the same
environment and schedule; for tasks without such runs, from the bank shipped with the package. A
bank is two files in `data/reference/`:

    NAME.json     {"env": {...}, "schedule": {...}, "history": [{"seeds", "versions", ...}, ...]}
    NAME.csv.gz   task,seed,step,episodes,successes   (one row per evaluation)

It is used only when `env` and `schedule` equal those of the runs in every field.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cwbench.reports.analysis import names
from cwbench.reports.analysis.metrics import area, own_window
from cwbench.reports.analysis.study import Group, Protocol, Study

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Reference:
    """Reference curves of one protocol: task -> [R, E]."""

    curves: dict[str, Array]
    sources: dict[str, str]  # task -> where its curves come from

    def missing(self, tasks: Sequence[str]) -> list[str]:
        return sorted({task for task in tasks if task not in self.curves})

    def seeds(self, tasks: Sequence[str]) -> int:
        """Seeds that every one of the tasks has; as published, surplus seeds are not used."""
        return min(len(self.curves[task]) for task in tasks)

    def areas(self, tasks: Sequence[str], seeds: int) -> Array:
        """[N, R]: area under each position's reference curve, for the first seeds."""
        return np.stack([self.curves[task][:seeds].mean(1) for task in tasks])


def find(study: Study, protocol: Protocol) -> Reference:
    """The reference of a protocol; tasks without one are missing from it, never zero."""
    curves: dict[str, Array] = {}
    sources: dict[str, str] = {}
    for task, group in _runs_found(study, protocol).items():
        known = ~np.isnan(area(group.complete)[:, 0])
        if known.any():
            curves[task] = own_window(group.complete)[known, 0]
            sources[task] = f"{known.sum()} runs of this folder"
    for name, settings, bank in banks():
        if settings == protocol.settings:
            for key, rows in bank.groupby("task"):
                if str(key) not in curves:
                    curves[str(key)] = _curves(rows, protocol)
                    sources[str(key)] = f"reference bank {name}"
    return Reference(curves, sources)


def _runs_found(study: Study, protocol: Protocol) -> dict[str, Group]:
    """Task -> its reference group: default options if there are several settings."""
    found: dict[str, Group] = {}
    for group in study.groups:
        fits = group.protocol.settings == protocol.settings and group.family == "single"
        if fits and names.method_key(group.method) == "finetuning":
            task = group.tasks[0]
            if task not in found or group.label == group.method:
                found[task] = group
    return found


def _curves(rows: pd.DataFrame, protocol: Protocol) -> Array:
    """[R, E] from rows of a bank; seeds without all evaluations are left out."""
    rate = rows.assign(
        evaluation=protocol.evaluation(rows["step"].to_numpy(np.int64))[1],
        rate=rows["successes"] / rows["episodes"],
    )
    table = rate.pivot(index="seed", columns="evaluation", values="rate")
    table = table.reindex(columns=range(protocol.evaluations)).dropna()
    return table.to_numpy(np.float64)


def bank_folder() -> Traversable:
    return files("cwbench.reports") / "data" / "reference"


@cache
def banks() -> list[tuple[str, dict[str, object], pd.DataFrame]]:
    """Name, settings and rows of every bank shipped with the package."""
    folder, found = bank_folder(), []
    if folder.is_dir():
        for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
            if entry.name.endswith(".json"):
                name = entry.name.removesuffix(".json")
                record = json.loads(entry.read_text(encoding="utf-8"))
                with (folder / f"{name}.csv.gz").open("rb") as stream:
                    rows = pd.read_csv(stream, compression="gzip")
                found.append((name, {key: record[key] for key in ("env", "schedule")}, rows))
    return found
