"""Made-up results folders, written with the classes that training uses.

The numbers come from invented learning curves, not from any method: they show what a report looks
like and let tests know the answer.
"""

import gzip
import json
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cwbench import sequences
from cwbench.planning.plan import Run
from cwbench.spec.config import (
    PROTOCOLS,
    MetaWorldConfig,
    MethodConfig,
    NetworkConfig,
    SACConfig,
    ScheduleConfig,
)
from cwbench.spec.options import resolve
from cwbench.spec.segment import Segment, Setup, digest
from cwbench.spec.statistics import EVAL_COLUMNS, TRAIN_COLUMNS
from cwbench.store.files import read_json, write_json
from cwbench.store.results import (
    DIAGNOSTICS,
    DIAGNOSTICS_COLUMNS,
    SegmentFolder,
    Store,
    experiment_name,
)

# method -> (ceiling, evaluations to learn as a share of the task, share forgotten per later task)
SKILLS = {
    "finetuning": (0.95, 0.25, 0.95),
    "ewc": (0.80, 0.35, 0.20),
    "packnet": (0.88, 0.40, 0.00),
    "clonex": (0.93, 0.18, 0.03),
    "perfect_memory": (0.55, 0.60, 0.05),
    "recall": (0.96, 0.15, -0.02),
}
METHODS = tuple(SKILLS)
ABOUT = {
    "protocol": "paper",
    "versions": {"cwbench": "0.1.0", "commit": "0123abc", "metaworld": "3.1.1", "mujoco": "3.3.0"},
    "machine": {"gpu": "made up"},
    "preset": {},  # made-up methods change no shared options
    "command": "cwbench run --method {method} --seq {sequence} --seeds {seed}",
    "created": 1.7e9,
}


@dataclass(frozen=True)
class Variant(MethodConfig):
    coef: float = 10.0


@dataclass(frozen=True)
class Setting:
    """A method with its options, under a protocol."""

    method: str
    coef: float = 10.0
    protocol: str = "paper"
    env: MetaWorldConfig = field(default_factory=MetaWorldConfig)
    schedule: dict[str, Any] = field(default_factory=dict)
    source: str | None = None

    @property
    def label(self) -> str:
        return self.method if self.coef == 10 else f"{self.method} coef={self.coef:g}"

    @property
    def setup(self) -> Setup:
        layer = PROTOCOLS[self.protocol] | self.schedule
        return Setup(
            method=self.method,
            options=Variant(coef=self.coef),
            sac=resolve(SACConfig, layer),
            network=resolve(NetworkConfig, layer),
            env=self.env,
            schedule=resolve(ScheduleConfig, layer),
            source=self.source,
        )


def success_rate(segment: Segment, position: int, share: float) -> float:
    """True success on a task after a share of the segment."""
    method, task = segment.setup.method, segment.tasks[position]
    ceiling, slowness, lost = SKILLS.get(method, (0.7, 0.4, 0.3))
    code = zlib.crc32(f"{task} {method} {segment.seed}".encode()) % 1000 / 1000
    hard = zlib.crc32(task.encode()) % 100 / 100
    later = segment.position - position
    pace = slowness * (0.5 + hard)
    learned = ceiling * (0.9 + 0.1 * code) * (1 - np.exp(-(1.0 if later else share) / pace))
    kept = (1 - lost) ** (later - 1 + share) if later else 1.0
    return float(np.clip(learned * kept, 0, 1))


def write_segment(
    store: Store,
    segment: Segment,
    sequence: str,
    share: float = 1.0,
    about: Mapping[str, Any] = ABOUT,
) -> None:
    """One segment on disk, trained for a share of its steps."""
    folder = store.folder(segment)
    if folder.length("evals.csv"):  # another sequence begins alike
        return
    schedule, rng = segment.setup.schedule, np.random.default_rng(zlib.crc32(segment.id.encode()))
    command = str(ABOUT["command"]).format(
        method=segment.setup.method, sequence=sequence, seed=segment.seed
    )
    folder.create(segment, {**about, "command": command})
    every, last = schedule.eval_every, schedule.steps_per_task
    steps = [step for step in [*range(every, last, every), last] if step <= share * last]
    write_curves(folder, segment, steps, rng)
    resources = {
        "train_steps": last,
        "eval_steps": len(steps) * schedule.eval_episodes * 200 * len(segment.tasks),
        "selection_steps": 0,
        "extra_steps": 0,
        "updates": last,
        "retrain_updates": 0,
        "replay_bytes": 4 * 29 * last,
        "method_bytes": 2000,
        "parameters": 800_000,
    }
    folder.set_status(
        "done" if share == 1 else "running",
        step=int(share * last),
        seconds=0.001 * share * last,
        resources=resources,
    )


def write_curves(
    folder: SegmentFolder, segment: Segment, steps: Sequence[int], rng: np.random.Generator
) -> None:
    schedule = segment.setup.schedule
    evals, train = [], []
    for step in steps:
        share = step / schedule.steps_per_task
        for position, task in enumerate(segment.tasks):
            wins = rng.binomial(schedule.eval_episodes, success_rate(segment, position, share))
            evals.append((step, position, task, schedule.eval_episodes, wins, 100.0 * wins))
        episodes = schedule.eval_every // 200
        wins = rng.binomial(episodes, success_rate(segment, segment.position, share))
        train.append(
            (step, step, episodes, wins, 50.0, 1.0, 2.0, 0.0, 3.0, 1.0, 0.1, 0.0, 1.0, 1.0)
        )
    folder.append("evals.csv", EVAL_COLUMNS, evals)
    folder.append("train.csv", TRAIN_COLUMNS, train)


def write_results(
    root: Path,
    *,
    sequence_names: Iterable[str],
    settings: Iterable[Setting],
    seeds: Iterable[int] = range(5),
    name: str = "made-up",
    upto: float | None = None,
) -> Path:
    """A results folder; with `upto` only that share of each run's tasks is on disk."""
    store, runs = Store(root), []
    settings, seeds = list(settings), list(seeds)
    for sequence in map(sequences.get, sequence_names):
        for setting in settings:
            for seed in seeds:
                length = len(sequence.tasks) if setting.method == "packnet" else None
                segments = [
                    Segment(setting.setup, seed, sequence.tasks[: end + 1], length)
                    for end in range(len(sequence.tasks))
                ]
                for position, segment in enumerate(segments):
                    left = 1.0 if upto is None else upto * len(segments) - position
                    if left > 0:
                        write_segment(store, segment, sequence.name, min(left, 1.0))
                runs.append(run_entry(sequence, setting, seed, segments))
    store.add_experiment({"name": name, "command": "made up", "created": 1.7e9, "runs": runs})
    return root


def write_runs(root: Path, runs: Sequence[Run], preset: Mapping[str, Any]) -> Path:
    """The runs of a real command, as their method with its preset would record them."""
    store = Store(root)
    for run in runs:
        for segment in run.segments:
            write_segment(store, segment, run.sequence, about=ABOUT | {"preset": dict(preset)})
    records = [run.record() for run in runs]
    name = f"{runs[0].label} on {runs[0].sequence}"
    store.add_experiment({"name": name, "command": "made up", "created": 1.7e9, "runs": records})
    return root


def change_experiment(file: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """Other runs in the record of an experiment, under the name that it then has."""
    record = read_json(file)
    change(record)
    file.unlink()
    write_json(file.with_name(f"{experiment_name(record)}.json"), record)


def run_entry(
    sequence: sequences.Sequence, setting: Setting, seed: int, segments: Sequence[Segment]
) -> dict[str, Any]:
    return {
        "sequence": sequence.name,
        "method": setting.method,
        "label": setting.label,
        "setup": digest(setting.setup.record()),
        "protocol": setting.protocol,
        "seed": seed,
        "tasks": list(sequence.tasks),
        "segments": [segment.id for segment in segments],
        "steps": [setting.setup.schedule.steps_per_task] * len(segments),
    }


SMALL = {"steps_per_task": 10_000, "eval_every": 1_000}  # ten evaluations a task, window 2


def small(method: str, **changes: Any) -> Setting:
    return replace(Setting(method, schedule=SMALL), **changes)


def singles(tasks: Iterable[str]) -> list[str]:
    return [f"single-{task}" for task in sorted(set(tasks))]


def write_set(folder: Path, tasks: Iterable[str], seeds: int = 3) -> None:
    """A shipped set in which every task has a success rate of 0.5 throughout."""
    record = small("finetuning").setup.record()
    (folder / "small.json").write_text(json.dumps(record))
    rows = [
        f"{task},{seed},{step},10,5"
        for task in tasks
        for seed in range(seeds)
        for step in range(1000, 11_000, 1000)
    ]
    with gzip.open(folder / "small.csv.gz", "wt") as stream:
        stream.write("\n".join(["task,seed,step,episodes,successes", *rows]) + "\n")


def add_counts(root: Path) -> None:
    """Other counts than `successes`, which the tests can tell apart."""
    for file in root.glob("segments/*/evals.csv"):
        table = pd.read_csv(file)
        table["v3_last"] = table["successes"] // 2
        table["v1_any"] = table["episodes"] - table["successes"]
        table["v1_last"] = 0
        table.to_csv(file, index=False)


Diagnosed = Mapping[tuple[str, str], float]  # quantity and part -> value


def write_diagnostics(root: Path, values: Callable[[str, int, int], Diagnosed]) -> Path:
    """Diagnostics for a folder's segments, from method, seed and position, the same all along."""
    for file in sorted(root.glob("segments/*/segment.json")):
        record = read_json(file)
        found = values(record["method"], record["seed"], len(record["tasks"]) - 1)
        every, last = (record["schedule"][key] for key in ("eval_every", "steps_per_task"))
        rows = [
            (step, *key, x) for step in range(every, last + 1, every) for key, x in found.items()
        ]
        if rows:
            SegmentFolder(file.parent).append(DIAGNOSTICS, DIAGNOSTICS_COLUMNS, rows)
    return root
