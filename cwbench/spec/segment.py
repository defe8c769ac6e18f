"""The unit of work: one task of one run, starting where its parent segment ended."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

from cwbench.spec.config import (
    GROUPS,
    EnvConfig,
    MethodConfig,
    NetworkConfig,
    SACConfig,
    ScheduleConfig,
)
from cwbench.spec.options import from_record, per_run_names, to_record

SCHEMA = 1


def digest(content: Any) -> str:
    """A short name for anything JSON can hold: equal content, equal names."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


@dataclass(frozen=True)
class Setup:
    """What a run is, apart from its tasks and its seed."""

    method: str
    options: MethodConfig
    sac: SACConfig
    network: NetworkConfig
    env: EnvConfig
    schedule: ScheduleConfig
    source: str | None = None  # hash of a method's file, for methods from outside the package

    def record(self) -> dict[str, Any]:
        return {
            "method": self.method,
            "source": self.source,
            "method_options": self.options.record(),
            "sac": to_record(self.sac),
            "network": to_record(self.network),
            "env": self.env.record(),
            "schedule": to_record(self.schedule),
        }

    @staticmethod
    def from_record(record: Mapping[str, Any], options_class: type[MethodConfig]) -> "Setup":
        groups: dict[str, Any] = {
            name: from_record(group, record[name])
            for name, group in GROUPS.items()
            if name != "env"
        }
        own = options_class.from_record(record["method_options"])
        env = EnvConfig.from_record(record["env"])
        return Setup(record["method"], own, env=env, source=record["source"], **groups)

    def fleet_key(self) -> dict[str, Any]:
        """What the runs of one fleet have in common: all but the values of per-run options.

        Of those only whether they are zero, which often means that a part is not there at all.
        """
        record = self.record()
        own = record["method_options"]
        zero = {
            name: getattr(self.options, name) == 0 for name in per_run_names(type(self.options))
        }
        return record | {"method_options": own | zero}


@dataclass(frozen=True)
class Segment:
    """One task of one run. `tasks` is the sequence up to and including the task trained here."""

    setup: Setup
    seed: int
    tasks: tuple[str, ...]
    length: int | None = None  # the whole sequence's, for methods whose training depends on it
    joint: bool = False  # all tasks at once, for methods that learn so
    experts: str | None = None  # a method whose single-task segments learned the tasks before

    @property
    def position(self) -> int:
        return len(self.tasks) - 1

    @cached_property
    def parent(self) -> "Segment | None":
        if self.joint or not self.position:
            return None
        return replace(self, tasks=self.tasks[:-1])

    @cached_property
    def expert(self) -> "Segment | None":
        """The single-task segment that learned this segment's task, for methods that need one."""
        if self.experts is None:
            return None
        setup = replace(
            self.setup,
            method=self.experts,
            options=MethodConfig(),
            source=None,
            env=self.setup.env.only(self.tasks[-1]),
        )
        return Segment(setup, self.seed, self.tasks[-1:])

    @property
    def parents(self) -> "list[Segment]":
        """What must be done before this segment begins."""
        return [segment for segment in (self.parent, self.expert) if segment is not None]

    def ancestor(self, position: int) -> "Segment":
        """The segment of the same run at an earlier position."""
        return replace(self, tasks=self.tasks[: position + 1])

    @property
    def steps(self) -> int:
        """Environment steps of training."""
        return self.setup.schedule.steps_per_task * (len(self.tasks) if self.joint else 1)

    def record(self) -> dict[str, Any]:
        """Everything that decides the numbers a segment produces, and nothing else."""
        record = {
            "schema": SCHEMA,
            **self.setup.record(),
            "seed": self.seed,
            "tasks": list(self.tasks),
            "length": self.length,
            "joint": self.joint,
        }
        return record | ({"experts": self.experts} if self.experts else {})

    @staticmethod
    def from_record(record: Mapping[str, Any], options_class: type[MethodConfig]) -> "Segment":
        """The segment that `record` described; further keys are ignored."""
        return Segment(
            Setup.from_record(record, options_class),
            record["seed"],
            tuple(record["tasks"]),
            record["length"],
            record["joint"],
            record.get("experts"),
        )

    @cached_property
    def id(self) -> str:
        return digest(self.record())

    @property
    def folder(self) -> str:
        name = self.setup.method.replace("/", "_").replace(":", "_")
        return f"{name}-{self.position + 1}-{self.tasks[-1]}-s{self.seed}-{self.id}"


SETUP_KEYS = (*(one.name for one in fields(Setup) if one.name != "options"), "method_options")
RECORD_KEYS = ("schema", *SETUP_KEYS, "seed", "tasks", "length", "joint")  # of every segment


def setup_digest(record: Mapping[str, Any]) -> str:
    """The name of the setup in a segment's record."""
    return digest({key: record[key] for key in SETUP_KEYS})


def recorded_id(record: Mapping[str, Any]) -> str:
    """The id of the segment that a record describes; further keys are ignored."""
    keys = (*RECORD_KEYS, *(["experts"] if record.get("experts") else []))
    return digest({key: record[key] for key in keys})


def segments_of_run(
    setup: Setup,
    seed: int,
    tasks: tuple[str, ...],
    *,
    needs_length: bool,
    joint: bool,
    experts: str | None = None,
) -> list[Segment]:
    """The segments of one run of a sequence, first task first."""
    if joint:
        return [Segment(setup, seed, tasks, joint=True)]
    length = len(tasks) if needs_length else None
    return [
        Segment(setup, seed, tasks[: end + 1], length, experts=experts) for end in range(len(tasks))
    ]
