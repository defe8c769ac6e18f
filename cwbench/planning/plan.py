"""From the runs asked for to the fleets still to be trained."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from cwbench.spec.errors import UserError
from cwbench.spec.segment import Segment, digest
from cwbench.store.integrity import needed_segments, saved_step, without_weights
from cwbench.store.results import Store

Fits = Callable[[Sequence[Segment]], bool]  # whether a fleet's tensors fit into memory


class TooLarge(Exception):
    """Not even one run of a segment fits into memory."""

    def __init__(self, segment: Segment) -> None:
        super().__init__(segment.folder)
        self.segment = segment


@dataclass(frozen=True)
class Run:
    """One seed of one method on one sequence."""

    sequence: str
    tasks: tuple[str, ...]
    label: str
    protocol: str
    segments: tuple[Segment, ...]

    @property
    def name(self) -> str:
        """As tables of results call it, unique in a results folder."""
        return f"{self.sequence}/{self.segments[-1].id}"

    def record(self) -> dict[str, Any]:
        last = self.segments[-1]
        return {
            "sequence": self.sequence,
            "method": last.setup.method,
            "label": self.label,
            "setup": digest(last.setup.record()),
            "protocol": self.protocol,
            "seed": last.seed,
            "tasks": list(self.tasks),
            "segments": [segment.id for segment in self.segments],
            "steps": [segment.steps for segment in self.segments],
        }


@dataclass(frozen=True)
class Plan:
    """Distinct segments, which of them are done, and fleets of the others, parents first."""

    runs: tuple[Run, ...]
    segments: tuple[Segment, ...]
    done: frozenset[str]
    fleets: tuple[tuple[Segment, ...], ...]

    @property
    def missing(self) -> int:
        return sum(map(len, self.fleets))


def make_plan(
    runs: Sequence[Run],
    store: Store,
    fleet_size: int,
    *,
    segments: Sequence[Segment] = (),
    fits: Fits = lambda fleet: True,
    devices: int = 1,
) -> Plan:
    """Collect missing segments in fleets: same shape, position, length and step of a snapshot.

    `segments` are trained besides those of the runs. The number of fleets is a multiple of
    `devices`, which train at the same time. TooLarge where not even one run fits.
    UserError where what a missing segment starts from is gone.
    """
    wanted = [*(segment for run in runs for segment in run.segments), *segments]
    distinct = {segment.id: segment for segment in wanted}
    done = frozenset(key for key, segment in distinct.items() if store.folder(segment).done)
    _check_weights([one for key, one in distinct.items() if key not in done], done, store)
    _check_replay([distinct[key] for key in _needed(runs, done)], store)
    alike: dict[tuple[Any, ...], list[Segment]] = {}
    for key, segment in distinct.items():
        if key not in done:
            depth = len(segment.tasks) + (segment.expert is not None)
            shape = (depth, digest(segment.setup.fleet_key()), segment.length)
            alike.setdefault((*shape, saved_step(store.folder(segment))), []).append(segment)
    # Parents come before children because shorter prefixes sort first, after their experts.
    ordered = sorted(alike.items(), key=lambda item: item[0][0])
    fleets = [fleet for _, same in ordered for fleet in _split(same, fleet_size, fits, devices)]
    return Plan(tuple(runs), tuple(distinct.values()), done, tuple(fleets))


def _needed(runs: Sequence[Run], done: frozenset[str]) -> list[str]:
    """Ids of finished segments from which a run still has to continue."""
    paths = ([segment.id for segment in run.segments] for run in runs)
    return [key for key in dict.fromkeys(needed_segments(paths, done)) if key in done]


def _check_weights(missing: Sequence[Segment], done: frozenset[str], store: Store) -> None:
    """A results folder merged without weights serves reports, not training."""
    for segment in missing:
        for parent in segment.parents:
            if parent.id in done and not store.folder(parent).end.exists():
                raise without_weights(store.folder(parent))


def _check_replay(needed: Sequence[Segment], store: Store) -> None:
    """`cwbench clean` may have removed it.

    Trained again in this folder, these segments could differ from those that finished runs started
    from.
    """
    cleaned = [segment.folder for segment in needed if store.folder(segment).cleaned]
    if cleaned:
        others = f" and {len(cleaned) - 1:,} more" if len(cleaned) > 1 else ""
        raise UserError(
            f"`cwbench clean` removed transitions that new runs need: of {cleaned[0]}{others}",
            "use another results folder, where they are trained again",
        )


def with_experts(runs: Sequence[Run]) -> list[Run]:
    """The runs, and those of single tasks that train experts for them, each once."""
    experts: dict[str, Run] = {}
    for run in runs:
        for expert in (segment.expert for segment in run.segments):
            if expert is not None:
                name, label = f"single-{expert.tasks[0]}", expert.setup.method
                experts[expert.id] = Run(name, expert.tasks, label, run.protocol, (expert,))
    asked = {run.segments[-1].id for run in runs}
    return [*runs, *(run for key, run in experts.items() if key not in asked)]


def _split(
    segments: Sequence[Segment], size: int, fits: Fits, devices: int
) -> list[tuple[Segment, ...]]:
    """As few fleets as possible, none larger than `size` nor than what fits."""
    fewest = min(len(segments), -(-len(segments) // (size * devices)) * devices)
    for count in range(fewest, len(segments) + 1):
        fleets = split_evenly(segments, count)
        if all(map(fits, fleets)):
            return fleets
    raise TooLarge(segments[0])


# Splits a fleet into groups that alternate: while one updates, workers collect for the others.
Grouping = Callable[[Sequence[Segment]], list[tuple[Segment, ...]]]
# Number of groups on an accelerator: the runs it needs at least. With few runs, an update of half
# as many takes nearly as long; with many, two groups leave the device waiting for workers.
GROUPS = {3: 75, 2: 16, 1: 1}


def one_group(fleet: Sequence[Segment]) -> list[tuple[Segment, ...]]:
    """On a CPU: updates leave no core for collecting at the same time."""
    return [tuple(fleet)]


def shape_key(group: Sequence[Segment]) -> str:
    """Groups with equal keys need the same kernels."""
    first = group[0]
    shape = {"runs": len(group), "tasks": len(first.tasks), "length": first.length}
    return digest(shape | {"setup": first.setup.fleet_key(), "joint": first.joint})


def groups_on_cuda(fleet: Sequence[Segment]) -> list[tuple[Segment, ...]]:
    """On an accelerator."""
    return split_evenly(fleet, next(n for n, runs in GROUPS.items() if len(fleet) >= runs))


def split_evenly(segments: Sequence[Segment], count: int) -> list[tuple[Segment, ...]]:
    """A number of parts of nearly equal size."""
    share, rest = divmod(len(segments), count)
    starts = [number * share + min(number, rest) for number in range(count + 1)]
    return [tuple(segments[start:end]) for start, end in pairwise(starts)]
