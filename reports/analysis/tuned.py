"""Settings that `cwbench tune` chose: their titles say where, and problems say what is no test."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

import numpy as np

from cwbench.reports.analysis import names
from cwbench.reports.analysis.study import Group, Study
from cwbench.store.tuning import matches


def possible_areas(low: float, high: float) -> tuple[float, float]:
    """The ends of an interval of areas, cut to what an area can be."""
    low, high = np.clip([low, high], *names.METRICS["anytime_performance"].bounds)
    return float(low), float(high)


def sensitivity(scored: Sequence[tuple[Mapping[str, Any], float]]) -> dict[str, dict[Any, float]]:
    """Settings with their scores -> option -> value -> mean score of the settings that have it."""
    found: dict[str, dict[Any, list[float]]] = {}
    for options, score in scored:
        for name, value in options.items():
            found.setdefault(name, {}).setdefault(value, []).append(score)
    return {
        name: {value: fmean(scores) for value, scores in values.items()}
        for name, values in found.items()
    }


def mark(study: Study, records: Sequence[Mapping[str, Any]]) -> None:
    """Keep the records, and name in the title of each chosen setting where it was chosen."""
    reported = {names.method_key(group.method) for group in study.groups}
    whole = not study.options.selection
    study.tuning = [r for r in records if whole or names.method_key(r["method"]) in reported]
    study.groups = [
        replace(group, tuned_on=_tuned_on(study, group, records)) for group in study.groups
    ]


def _tuned_on(study: Study, group: Group, records: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    ids = [key for run in group.runs for key in run.segments if key in study.segments]
    if not ids:
        return ()
    found = [r["on"] for r in records if matches(r, study.segments[ids[0]])]
    return tuple(dict.fromkeys(name for names in found for name in names))


def problems(study: Study) -> Iterator[str]:
    """Numbers on a sequence that the setting was chosen on."""
    for group in study.groups:
        name = group.runs[0].name.rpartition("/")[0]  # `sequence` tells apart two of one name
        if name in group.tuned_on:
            yield (
                f"{group.sequence}, {group.title}: the options were chosen on {name}, so its "
                "numbers are no test of them"
            )
