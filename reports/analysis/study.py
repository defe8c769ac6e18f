"""What a report is made of: protocols, groups of seeds with their arrays, the whole study."""

from collections.abc import Container, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cwbench.reports.analysis import names
from cwbench.reports.analysis.definitions import definitions, env_options
from cwbench.reports.analysis.intervals import LEVEL
from cwbench.reports.analysis.metrics import default_window, own_window
from cwbench.spec.config import PROTOCOLS, MetaWorldConfig, ScheduleConfig
from cwbench.spec.options import completed, flag_name, resolve
from cwbench.spec.protocol import protocol_title
from cwbench.spec.segment import digest
from cwbench.spec.statistics import count_of

Array = NDArray[np.float64]
Count = NDArray[np.int64]
Curve = tuple[Count, Array]  # steps of a run and values there
Measure = tuple[str, str]  # quantity and network of a diagnostic; no network for `kl`
SHIPPED = "v3-any"  # the count of success that every record has
SUCCESS_TITLES = {
    "v3-any": "Meta-World 3's test at any step (v3-any)",
    "v3-last": "Meta-World 3's test at the last step (v3-last)",
    "v1-any": "Meta-World V1's test at any step (v1-any)",
    "v1-last": "Meta-World V1's test at the last step (v1-last)",
}


@dataclass(frozen=True)
class Options:
    """What the reader of a report chooses."""

    window: int | None = None  # evaluations in an end value; None: a fifth of a task's
    level: float = LEVEL  # of every interval
    band: str = "interval"  # around curves
    against: str | None = None  # compare methods with this one only
    all_cells: bool = False  # published cells without a number of ours, too
    # How episodes count as solved; None: next to published numbers as those were counted, else as
    # the protocol counts.
    success: str | None = None
    protocol: str | None = None  # key of the only protocol to report
    # Patterns of the only ones to report.
    protocols: tuple[str, ...] = ()
    sequences: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()  # labels

    @property
    def selection(self) -> str:
        return ", ".join([*self.protocols, *self.sequences, *self.methods])


DEFAULTS = Options()


@dataclass(frozen=True)
class Protocol:
    """Settings that must be equal before two numbers may share a table."""

    name: str
    env: Mapping[str, Any]
    schedule: Mapping[str, Any]
    # Of the tasks that sequences define themselves: `analysis.definitions`.
    definitions: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def key(self) -> str:
        return digest({"name": self.name, **self.settings})

    @property
    def title(self) -> str:
        return protocol_title(self.name)

    @cached_property
    def changed(self) -> frozenset[str]:
        """Options in which its runs are not what the package's protocol of its name says."""
        if self.name not in PROTOCOLS:
            return frozenset()
        groups = [ScheduleConfig, MetaWorldConfig] if self.on_metaworld else [ScheduleConfig]
        says: dict[str, Any] = {}
        for group in groups:
            says |= asdict(resolve(group, PROTOCOLS[self.name]))
        return frozenset(
            key for key, value in self.options.items() if value != says.get(key, value)
        )

    @property
    def full_title(self) -> str:
        return ", ".join([self.title, *self.named(self.changed)])

    def named(self, options: Container[str]) -> list[str]:
        """Some of its options: `lag 1`, `steps-per-task 250,000`."""
        return [
            f"{flag_name(name)} {value:,}" if type(value) is int else f"{flag_name(name)} {value}"
            for name, value in self.options.items()
            if name in options
        ]

    @property
    def settings(self) -> dict[str, Any]:
        return {"env": dict(self.env), "schedule": dict(self.schedule)}

    @property
    def shared_settings(self) -> dict[str, Any]:
        """The settings that a run of one task alone has, too."""
        return {**self.settings, "env": env_options(self.env)}

    def definition(self, task: str) -> Mapping[str, Any] | None:
        """What defines a task, where sequences do; None in suites whose tasks have names only."""
        return (self.definitions or definitions(self.env)).get(task)

    @cached_property
    def options(self) -> dict[str, Any]:
        """Of the environment and the schedule, with what records leave out."""
        env = env_options(self.env)
        return {
            **(completed(MetaWorldConfig, env) if self.on_metaworld else env),
            **completed(ScheduleConfig, self.schedule),
        }

    @property
    def on_metaworld(self) -> bool:
        return bool(self.env.get("suite", MetaWorldConfig.suite) == MetaWorldConfig.suite)

    @property
    def evaluations(self) -> int:
        """Evaluations in one task's window; the last one is at the task's end."""
        if not self.schedule:
            return 1
        return ceil(self.steps / int(self.schedule["eval_every"]))

    @property
    def success(self) -> str:
        """How its episodes count as solved, unless the reader chooses."""
        return count_of(self.env.get("success"))

    @property
    def evaluation_steps(self) -> Array:
        """Steps of a task at which its evaluations are made, [E]."""
        every = np.arange(1.0, self.evaluations + 1) * self.schedule.get("eval_every", 1)
        return np.asarray(np.minimum(every, self.steps))

    @property
    def steps(self) -> int:
        return int(self.schedule.get("steps_per_task", 1))

    def evaluation(self, step: Count) -> tuple[Count, Count]:
        """Task window and index of the evaluation made at a step of a run; -1 where none is due."""
        position, inside = (step - 1) // self.steps, (step - 1) % self.steps + 1
        every = self.schedule["eval_every"]
        due = ((inside % every == 0) | (inside == self.steps)) & (step > 0)
        return position, np.where(due, -(-inside // every) - 1, -1)

    def on_grid(self, curve: Curve | None, tasks: int) -> Array:
        """[N, E]: values at the evaluations of a run; NaN where there are none."""
        target = np.full((tasks, self.evaluations), np.nan)
        if curve:
            steps, values = curve
            position, evaluation = self.evaluation(steps)
            use = (evaluation >= 0) & (position < tasks)
            target[position[use], evaluation[use]] = values[use]
        return target


@dataclass(frozen=True)
class Run:
    """One seed of one setting on one sequence, as far as it came."""

    name: str
    seed: int
    state: str
    step: int
    steps: int
    segments: tuple[str, ...]
    folders: tuple[str, ...]

    @property
    def progress(self) -> float:
        return 1.0 if self.state == "done" else min(self.step / max(self.steps, 1), 0.999)


@dataclass(frozen=True, eq=False)
class Group:
    """The seeds of one setting on one sequence: what a table cell is made of."""

    sequence: str
    tasks: tuple[str, ...]
    method: str
    label: str
    setup: str
    protocol: Protocol
    runs: tuple[Run, ...]
    success: Array  # [R, N, E, N]
    training: Array  # [R, N, E]: success of the training episodes since the last evaluation
    logged: Mapping[str, Array] = field(default_factory=dict)  # names.STATISTICS -> [R, N, E]
    # Ways to count success -> [R, N, E, N]; `success` is one of them.
    counts: Mapping[str, Array] = field(default_factory=dict)
    lacking: frozenset[str] = frozenset()  # ways in which not every evaluation was counted
    tuned_on: tuple[str, ...] = ()  # sequences on which these options were chosen
    version: str = ""  # start of its code's name in `sources/`, of methods with several versions
    plasticity: Mapping[Measure, Array] = field(default_factory=dict)  # -> [R, N, E]

    def counted(self, success: str) -> "Group":
        """The same runs with success counted in another way; NaN where the records lack it."""
        return replace(self, success=self.counts.get(success, np.full_like(self.success, np.nan)))

    def has_count(self, success: str) -> bool:
        """Whether every evaluation was counted in this way, even if a number is damaged."""
        return success not in self.lacking

    @property
    def family(self) -> str:
        alone = len(self.tasks) == 1 and self.protocol.definitions
        return "single" if alone else names.family(self.sequence)

    @property
    def title(self) -> str:
        title = names.label_title(self.method, self.label)
        title += f" ({self.version})" if self.version else ""
        return f"{title}, tuned on {', '.join(self.tuned_on)}" if self.tuned_on else title

    @property
    def key(self) -> str:
        return f"{self.sequence}-{self.setup}"

    @property
    def joint(self) -> bool:
        """All tasks trained at once: performance exists, forgetting and transfer do not."""
        return len(self.runs[0].segments) < len(self.tasks)

    @property
    def seeds(self) -> list[int]:
        return [run.seed for run in self.runs]

    @property
    def evaluation_steps(self) -> Array:
        """Steps of a run at which its evaluations are made, [N * E]."""
        starts = self.protocol.steps * np.arange(len(self.tasks))[:, None]
        return np.asarray((starts + self.protocol.evaluation_steps).ravel())

    @property
    def finished(self) -> list[Run]:
        return [run for run in self.runs if run.state == "done"]

    @property
    def progress(self) -> float:
        return sum(run.progress for run in self.runs) / len(self.runs)

    @cached_property
    def complete(self) -> Array:
        """[R, N, E, N] with NaN for every run that has not ended: only those enter the metrics."""
        done = np.array([run.state == "done" for run in self.runs])
        return np.where(done[:, None, None, None], self.success, np.nan)

    def sound(self, values: Array) -> Array:
        """Values [R, ...] with NaN for the runs that failed or diverged: they are in no mean."""
        broken = np.array([run.state in ("failed", "diverged") for run in self.runs])
        return np.where(broken.reshape(-1, *[1] * (values.ndim - 1)), np.nan, values)

    @cached_property
    def latest(self) -> Array:
        """[R, N, E, N]: runs that have ended; as long as there are none, those that may."""
        return self.complete if self.finished else self.sound(self.success)

    @cached_property
    def own_windows(self) -> Array:
        """[R, N, E]: success on each task in its own window, of runs that have ended."""
        return own_window(self.complete)


@dataclass(eq=False)
class Study:
    """Everything a report needs to know about a results folder."""

    groups: list[Group]
    segments: dict[str, dict[str, Any]]  # id -> record and status
    problems: list[str]  # everything a reader must know
    notes: list[str] = field(default_factory=list)  # problems of runs that are as they should be
    options: Options = DEFAULTS
    tuning: Sequence[Mapping[str, Any]] = ()  # records of `cwbench tune`
    others: list[Group] = field(default_factory=list)  # not to be reported: references at most

    @property
    def everything(self) -> list[Group]:
        return [*self.groups, *self.others]

    def record(self, group: Group) -> Mapping[str, Any]:
        """Record of some segment of a group."""
        ids = [key for run in group.runs for key in run.segments]
        return next((self.segments[key] for key in ids if key in self.segments), {})

    @property
    def used(self) -> list[dict[str, Any]]:
        """Records of the segments that are reported."""
        ids = dict.fromkeys(key for g in self.groups for run in g.runs for key in run.segments)
        return [self.segments[key] for key in ids if key in self.segments]

    def success_of(self, protocol: Protocol) -> str:
        """How a protocol's episodes count as solved: as the reader chose, or as it says itself."""
        return self.options.success or protocol.success

    def counted(self, success: str) -> "Study":
        """The same study with success counted in another way."""
        groups, others = (
            [group.counted(success) for group in found] for found in (self.groups, self.others)
        )
        options = replace(self.options, success=success)
        return replace(self, groups=groups, others=others, options=options)

    def as_published(self, protocol: Protocol, success: str) -> "Study":
        """Counted as published numbers are, where records allow it and the reader chose none."""
        chosen = self.options.success is not None
        if chosen or not all(group.has_count(success) for group in self.of(protocol)):
            return self
        return self.counted(success)

    @property
    def protocols(self) -> list[Protocol]:
        """The one with the most runs first."""
        found = {group.protocol.key: group.protocol for group in self.groups}
        runs = {key: sum(len(group.runs) for group in self.of(found[key])) for key in found}
        return sorted(found.values(), key=lambda own: (-runs[own.key], own.name, own.key))

    def title(self, protocol: Protocol) -> str:
        """A name to read: the protocol's, with what it changes and what tells it from others."""
        same = [other for other in self.protocols if other.full_title == protocol.full_title]
        items = protocol.options.items()
        telling = {key for key, value in items if any(o.options.get(key) != value for o in same)}
        own = protocol.named(telling | protocol.changed)
        if definitions(protocol.env) and len(same) > 1:  # tasks of one name that differ
            found = dict.fromkeys(group.sequence for group in self.of(protocol))
            own.append(f"{', '.join(found)} ({protocol.key[:6]})")
        marked = len({other.name for other in same}) > 1
        return ", ".join([protocol.name if marked else protocol.title, *own])

    def slug(self, protocol: Protocol) -> str:
        """A name for files: the protocol's, made unique where two protocols share it."""
        same = [other for other in self.protocols if other.title == protocol.title]
        return protocol.title if len(same) == 1 else f"{protocol.title}-{protocol.key[:6]}"

    def ending(self, protocol: Protocol) -> str:
        """What follows the names of a protocol's tables and figures where there are others."""
        return f"-{self.slug(protocol)}" if len(self.protocols) > 1 else ""

    def window(self, protocol: Protocol) -> int:
        return self.options.window or default_window(protocol.evaluations)

    def of(self, protocol: Protocol, family: str | None = None) -> list[Group]:
        return [
            group
            for group in self.groups
            if group.protocol.key == protocol.key and family in (None, group.family)
        ]

    def family_title(self, protocol: Protocol, family: str) -> str:
        """`CW3`; one or two other sequences by their names."""
        found = dict.fromkeys(group.sequence for group in self.of(protocol, family))
        if family == "other" and 0 < len(found) <= 2:
            return " and ".join(map(names.sequence_title, found))
        return names.FAMILIES[family]
