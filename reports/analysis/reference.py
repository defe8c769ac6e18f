"""Single-task reference curves, which forward transfer is measured against.

They come from runs of fine-tuning on sequences of one task in the results folder, such as
`single-TASK`, or from the reference sets shipped with the package. Tasks that neither has take the
folder's runs of `independent`, which trains every position from scratch: new networks, temperature,
optimiser and replay, and random actions first. A set is two files in `data/reference/`:

    NAME.json     {"env", "schedule", "sac", "network", "history": [{"seeds", ...}, ...]}
    NAME.csv.gz   task,seed,step,episodes,successes   (one row per evaluation; further columns
                  count success in other ways, see `SUCCESS_COLUMNS`)

A source serves a method only if environment, schedule, networks and SAC options are equal in every
field but those that the method itself sets (its preset).
"""

import json
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cwbench.reports.analysis import names
from cwbench.reports.analysis.study import SHIPPED, Group, Protocol, Study
from cwbench.spec.config import NetworkConfig
from cwbench.spec.statistics import SUCCESS_COLUMNS
from cwbench.spec.text import counted

Array = NDArray[np.float64]
FOLDER = "this folder"
INDEPENDENT = f"independent in {FOLDER}"
HEADS = ("actor_head_layers", "critic_head_layers")
SIZES = {"obs_size": "observations", "action_size": "actions"}  # of a sequence's largest task
# Presets of methods whose records do not name them (`preset` in segment.json).
PRESETS: dict[str, dict[str, Any]] = {
    "packnet": {"clip_norm": 2e-5},
    "clonex": {"clip_norm": 0.1},
    "perfect_memory": {"batch_size": 512},
    "recall": {"clip_norm": 0.1, "critic_head_layers": 3},
}


@dataclass(frozen=True, eq=False)
class Curves:
    """Reference runs of one task."""

    success: Array  # [R, E]
    seeds: tuple[int, ...]
    origin: str
    segments: frozenset[str] = frozenset()  # of runs in this folder

    def __len__(self) -> int:
        return len(self.seeds)

    @property
    def source(self) -> str:
        """The origin, with the number of runs where it is this folder."""
        return f"{counted(len(self), 'run')} of {self.origin}" if self.segments else self.origin


@dataclass(frozen=True)
class Reference:
    """Reference curves for one setting, and why tasks have none."""

    curves: dict[str, Curves]
    refused: dict[str, str] = field(default_factory=dict)  # task -> what differs

    def missing(self, tasks: Sequence[str]) -> list[str]:
        return sorted({task for task in tasks if task not in self.curves})

    def why(self, tasks: Sequence[str]) -> str:
        """Why transfer on these tasks is empty."""
        missing = self.missing(tasks)
        reasons = dict.fromkeys(self.refused[task] for task in missing if task in self.refused)
        text = f"no single-task reference for {', '.join(missing)}"
        return f"{text} with these settings ({'; '.join(reasons)})" if reasons else text

    def seeds(self, tasks: Sequence[str]) -> int:
        """Seeds that every one of the tasks has; as published, surplus seeds are not used."""
        return min(len(self.curves[task]) for task in tasks)

    def rows(
        self, tasks: Sequence[str], last: int | None = None, keep: Sequence[Set[int]] = ()
    ) -> list[tuple[Array, list[int]]]:
        """Per task: values of the seeds in use, and those seeds.

        A value is the area under the curve; with `last`, the mean of that many last evaluations.
        `keep` has the seeds of each task that are used before others.
        """
        count, start = self.seeds(tasks), 0 if last is None else -last
        found = []
        for task, kept in zip(tasks, keep or [frozenset[int]()] * len(tasks), strict=True):
            curves = self.curves[task]
            first = sorted(range(len(curves)), key=lambda i: curves.seeds[i] not in kept)
            used = sorted(first[:count])
            values = curves.success[used, start:].mean(1)
            found.append((values, [curves.seeds[i] for i in used]))
        return found

    def means(self, tasks: Sequence[str], last: int | None = None) -> Array:
        """[N]: mean over seeds of the area, or of the last evaluations, of each position."""
        return np.array([values.mean() for values, _ in self.rows(tasks, last)])


@dataclass(frozen=True)
class Source:
    """Reference runs of one origin under one setting."""

    name: str
    options: Mapping[str, Any]  # of networks and SAC
    curves: Mapping[str, Curves]
    lacks: str = ""  # why it cannot serve, whatever the setting


def find(study: Study, protocol: Protocol, group: Group | None = None) -> Reference:
    """The reference for a group's setting, or with default options without a group.

    One source for all tasks of the study if one has them all, this folder's runs first; else
    task by task the one with the most seeds. Where none has a task, `independent` serves. Tasks
    without a reference are missing, never zero.
    """
    options, preset = setting(study, group) if group else ({}, frozenset())
    fitting: list[Source] = []
    refused = padded(study, protocol)
    for source in (*independent_sources(study, protocol), *sources(study, protocol)):
        if gap := source.lacks or difference(source.options, options, preset):
            refused |= dict.fromkeys(source.curves, f"that of {source.name} has {gap}")
        else:
            fitting.append(source)
    needed = {
        task
        for one in study.everything  # so that no number depends on what is reported with it
        if one.protocol.key == protocol.key
        if one.family != "single" and not _is_reference(one, protocol)
        for task in one.tasks
    }
    single = [source for source in fitting if source.name != INDEPENDENT]
    whole = [source for source in single if needed <= source.curves.keys()][:1]
    curves: dict[str, Curves] = {}
    for source in whole or sorted(single, key=lambda s: s.name != FOLDER):
        for task, found in source.curves.items():
            if task not in curves or len(found) > len(curves[task]):
                curves[task] = found
    for source in fitting:
        curves = {**source.curves, **curves} if source.name == INDEPENDENT else curves
    return Reference(curves, {task: why for task, why in refused.items() if task not in curves})


def setting(study: Study, group: Group) -> tuple[dict[str, Any], frozenset[str]]:
    """Network and SAC options of a group, and which of them its method sets by itself."""
    record = study.record(group)
    options = {**(record.get("network") or {}), **(record.get("sac") or {})}
    preset = _fitted(preset_of(record, group.method), options)
    return options, frozenset(key for key, value in preset.items() if options.get(key) == value)


def preset_of(record: Mapping[str, Any], method: str) -> Mapping[str, Any]:
    """Shared options that a method sets by itself."""
    preset = record.get("preset")
    return preset if isinstance(preset, Mapping) else PRESETS.get(names.method_key(method), {})


def _fitted(preset: Mapping[str, Any], options: Mapping[str, Any]) -> Mapping[str, Any]:
    """A preset as networks get it: less deep ones than the method's own keep one layer shared."""
    most = options.get("layers", NetworkConfig.layers) - 1
    if most + 1 >= preset.get("layers", NetworkConfig.layers):
        return preset
    return {key: min(own, most) if key in HEADS else own for key, own in preset.items()}


def difference(
    reference: Mapping[str, Any], options: Mapping[str, Any], preset: frozenset[str]
) -> str:
    """The first option in which a reference differs from a setting, in words; else nothing."""
    for key, value in options.items():
        if key not in preset and key in reference and reference[key] != value:
            return f"{key} {reference[key]} instead of {value}"
    return "" if reference or not options else "no record of its options"


def sources(study: Study, protocol: Protocol) -> Iterator[Source]:
    """All references under a protocol's environment and schedule, this folder's first.

    Several settings of one origin are several sources; those under the protocol's own name come
    first, and default options before others.
    """
    groups = [g for g in _trained_alone(study) if _is_reference(g, protocol)]
    yield from _folder_sources(study, protocol, FOLDER, groups)
    success = study.success_of(protocol)
    for shipped in shipped_sets():
        if shipped.settings == protocol.settings:
            known = SUCCESS_COLUMNS[success] in shipped.rows
            yield Source(
                shipped.title,
                shipped.options,
                shipped.curves(protocol, success if known else SHIPPED),
                lacks="" if known else f"success counted as {SHIPPED} only",
            )


def independent_sources(study: Study, protocol: Protocol) -> Iterator[Source]:
    """Runs of built-in `independent` under a protocol's environment and schedule."""
    groups = [
        group
        for group in study.everything
        if names.method_key(group.method) == "independent" and not study.record(group).get("source")
        if group.protocol.shared_settings == protocol.shared_settings
    ]
    return _folder_sources(study, protocol, INDEPENDENT, groups)


def _folder_sources(
    study: Study, protocol: Protocol, origin: str, groups: Sequence[Group]
) -> Iterator[Source]:
    """A source for each setting, of the runs that have ended."""
    settings: dict[str, list[Group]] = {}
    for group in sorted(
        groups, key=lambda g: (g.protocol.name != protocol.name, g.label != g.method)
    ):
        settings.setdefault(group.setup, []).append(group)
    for members in settings.values():
        if curves := _curves(members, protocol, origin):
            yield Source(origin, setting(study, members[0])[0], curves)


def _curves(groups: Sequence[Group], protocol: Protocol, origin: str) -> dict[str, Curves]:
    """Task -> curves of one setting; a seed's is the mean over the segments that trained it."""
    found: dict[str, dict[int, dict[str, Array]]] = {}  # task -> seed -> segment -> curve
    for group in groups:
        for index, task in enumerate(group.tasks):
            if group.protocol.definition(task) != protocol.definition(task):
                continue
            for run, curve in zip(group.runs, group.own_windows[:, index], strict=True):
                if np.isfinite(curve).all():
                    seeds = found.setdefault(task, {})
                    seeds.setdefault(run.seed, {})[run.segments[index]] = curve
    return {
        task: Curves(
            np.array([np.mean([*seeds[seed].values()], axis=0) for seed in sorted(seeds)]),
            tuple(sorted(seeds)),
            origin,
            frozenset(segment for own in seeds.values() for segment in own),
        )
        for task, seeds in found.items()
    }


def padded(study: Study, protocol: Protocol) -> dict[str, str]:
    """Task -> why its run alone is no reference: the sequence pads its observations or actions."""
    found: dict[str, str] = {}
    for group in _trained_alone(study):
        [task] = group.tasks
        own, wanted = (one.definition(task) for one in (group.protocol, protocol))
        if not own or not wanted or group.protocol.shared_settings != protocol.shared_settings:
            continue
        if {**own, "padded": wanted["padded"]} == wanted:
            for key, size in wanted["padded"].items():
                if own["padded"][key] != size:
                    text = f"{SIZES[key]} of size {own['padded'][key]}, padded to {size}"
                    found[task] = f"that of {FOLDER} has {text} in this sequence"
    return found


def _trained_alone(study: Study) -> list[Group]:
    """Runs of built-in fine-tuning on one task; a user's class may have its name."""
    plain = [group for group in study.everything if _is_plain(group)]
    return [group for group in plain if not study.record(group).get("source")]


def _is_plain(group: Group) -> bool:
    return len(group.tasks) == 1 and names.method_key(group.method) == "finetuning"


def _is_reference(group: Group, protocol: Protocol) -> bool:
    """Whether it is fine-tuning on one task, under these settings and defined as here."""
    if not _is_plain(group):
        return False
    [task], own = group.tasks, group.protocol
    same = own.definition(task) == protocol.definition(task)
    return same and own.shared_settings == protocol.shared_settings


@dataclass(frozen=True, eq=False)
class ShippedSet:
    """A reference set that comes with the package."""

    name: str
    record: Mapping[str, Any]
    rows: pd.DataFrame

    @property
    def title(self) -> str:
        return f"the shipped set {self.name}"

    @property
    def settings(self) -> dict[str, Any]:
        return {key: self.record[key] for key in ("env", "schedule")}

    @property
    def options(self) -> dict[str, Any]:
        return {**self.record.get("network", {}), **self.record.get("sac", {})}

    def curves(self, protocol: Protocol, success: str = SHIPPED) -> dict[str, Curves]:
        """Task -> curves; seeds without all evaluations are left out."""
        rate = self.rows.assign(
            evaluation=protocol.evaluation(self.rows["step"].to_numpy(np.int64))[1],
            rate=self.rows[SUCCESS_COLUMNS[success]] / self.rows["episodes"],
        )
        found = {}
        for task, rows in rate.groupby("task"):
            table = rows.pivot(index="seed", columns="evaluation", values="rate")
            table = table.reindex(columns=range(protocol.evaluations)).dropna()
            seeds = tuple(int(seed) for seed in table.index)
            found[str(task)] = Curves(table.to_numpy(np.float64), seeds, self.title)
        return found


def shipped_folder() -> Traversable:
    return files("cwbench.reports") / "data" / "reference"


@cache
def shipped_sets() -> list[ShippedSet]:
    """Every reference set of the package."""
    folder, found = shipped_folder(), []
    if folder.is_dir():
        for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
            if entry.name.endswith(".json"):
                name = entry.name.removesuffix(".json")
                record = json.loads(entry.read_text(encoding="utf-8"))
                with (folder / f"{name}.csv.gz").open("rb") as stream:
                    rows = pd.read_csv(stream, compression="gzip")
                found.append(ShippedSet(name, record, rows))
    return found
